import {
  type StoredLine,
  type LineUpdate,
  ClaimLeases,
  type Line,
  type LineStorage,
} from 'nestjs-distributed-lock/core';

const METADATA = { host: 'h', pid: 1 };
const LIMITS = { maxHolders: 2, maxWaiters: 2 };

/** A value that nobody else changes. */
class Cell implements LineStorage<Line> {
  line: Line = [];
  now = 1_000;
  uncertaintyMs = 0;

  async read(): Promise<StoredLine<Line>> {
    return { line: this.line, now: this.now, uncertaintyMs: this.uncertaintyMs, nextToken: 1n, version: this.line };
  }

  async swap(_key: string, _version: Line, { line }: LineUpdate): Promise<boolean> {
    this.line = line;
    return true;
  }
}

describe('leases in a line', () => {
  const ask = async (leases: ClaimLeases<Line>, owner: string, mayWait = true): Promise<boolean> =>
    (await leases.tryAcquire('k', owner, 60_000, METADATA, mayWait)).acquired;

  it('keep places for waiters however many hold the key, so that a writer is not passed by for ever', async () => {
    const leases = new ClaimLeases(new Cell(), LIMITS);
    expect(await ask(leases, 'reader 1~s')).toBe(true);
    expect(await ask(leases, 'reader 2~s')).toBe(true);
    expect(await ask(leases, 'writer')).toBe(false);
    await leases.release('k', 'reader 1~s');
    expect(await ask(leases, 'reader 3~s')).toBe(false);
    await leases.release('k', 'reader 2~s');
    expect(await ask(leases, 'writer')).toBe(true);
  });

  it('are of so many holders at most, whatever fits', async () => {
    const cell = new Cell();
    const leases = new ClaimLeases(cell, LIMITS);
    for (let i = 0; i < 10; i += 1) await ask(leases, `reader ${i}~s`);
    expect(cell.line.filter(({ token }) => token !== undefined)).toHaveLength(LIMITS.maxHolders);
    expect(cell.line.length).toBeLessThanOrEqual(LIMITS.maxHolders + LIMITS.maxWaiters);
    await leases.release('k', 'reader 0~s');
    expect(await ask(leases, 'reader 9~s')).toBe(true);
  });

  it('make a line of a bounded length, also when waiters become holders', async () => {
    const cell = new Cell();
    const leases = new ClaimLeases(cell, LIMITS);
    for (const owner of ['a~s', 'b~s', 'writer', 'c~s']) await ask(leases, owner);
    await leases.release('k', 'writer');
    await ask(leases, 'c~s');
    for (const owner of ['another writer', 'd~s', 'e~s']) await ask(leases, owner);
    expect(cell.line).toHaveLength(LIMITS.maxHolders + LIMITS.maxWaiters);
  });

  it('are renewed before others are granted, however many ask at once', async () => {
    const cell = new Cell();
    const leases = new ClaimLeases(cell, { maxHolders: 100, maxWaiters: 2 });
    await ask(leases, 'holder~s');
    let readings = 0;
    const read = cell.read.bind(cell);
    cell.read = () => {
      readings += 1;
      return read();
    };
    const asking = Array.from({ length: 20 }, (_, i) => ask(leases, `reader ${i}~s`));
    const readingsAtRenewal = leases.renew('k', 'holder~s', 60_000).then(() => readings);
    // The first one was asked for already, and each reading has one token.
    expect(await readingsAtRenewal).toBe(2);
    await Promise.all(asking);
    expect(readings).toBe(20);
  });

  it('keep the place of a waiter for those whose clock may be ahead', async () => {
    const cell = new Cell();
    const leases = new ClaimLeases(cell, LIMITS);
    await ask(leases, 'holder');
    cell.uncertaintyMs = 2_500;
    await ask(leases, 'waiter');
    cell.now += 2_500;
    cell.uncertaintyMs = 0;
    await ask(leases, 'other');
    cell.now += 4_000;
    await ask(leases, 'other');
    expect(cell.line.map(({ owner }) => owner)).toEqual(['holder', 'waiter', 'other']);
  });

  it('have descriptions of a bounded size, in bytes', async () => {
    const cell = new Cell();
    const label = '鍵'.repeat(60);
    await new ClaimLeases(cell, LIMITS).tryAcquire('k', 'holder', 1_000, { ...METADATA, label }, true);
    expect(Buffer.byteLength(cell.line[0]?.description ?? '')).toBeLessThanOrEqual(200);
  });
});
