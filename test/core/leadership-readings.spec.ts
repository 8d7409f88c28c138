import { type Holder, type Leadership, LockConfigurationError, type LockService } from 'nestjs-distributed-lock/core';
import { Office, OFFICE_TTL_MS as TTL_MS, OfficeWorld } from './office-world.js';

describe('who leads', () => {
  let { world, clock, office, locks } = new OfficeWorld();

  beforeEach(() => {
    ({ world, clock, office, locks } = new OfficeWorld());
  });

  const labelled = (label: string): LockService => world.service({ label });

  it('is one reading', async () => {
    const [mine, theirs] = ['a', 'b'].map((label) => labelled(label).lead('chief', office.obedient)) as [
      Leadership,
      Leadership,
    ];
    await clock.advance(0);
    await expect(mine.leader()).resolves.toMatchObject({ label: 'a', pid: process.pid });
    await expect(theirs.leader()).resolves.toMatchObject({ label: 'a', pid: process.pid });
    await theirs.close();
    await mine.resign();
    await expect(mine.leader()).resolves.toBeUndefined();
    world.backend.breakDown(new Error('down'));
    await expect(mine.leader()).rejects.toThrow('test could not read the holder of "chief": down');
  });

  it('is known to inspect(), which tells terms from other locks', async () => {
    const mine = locks.lead('chief', office.work);
    await using _ = await locks.acquire('other');
    await clock.advance(0);
    const known = (): unknown => locks.inspect().map(({ key, leads }) => [key, leads]);
    expect(known()).toEqual(
      expect.arrayContaining([
        ['chief', true],
        ['other', false],
      ]),
    );
    const resigned = mine.resign();
    expect([mine.isLeader, known()]).toEqual([false, expect.arrayContaining([['chief', true]])]);
    office.end();
    await resigned;
    expect(known()).toEqual([['other', false]]);
    await mine.close();
  });

  it('is no longer told to a reader who leaves, at once', async () => {
    await using mine = locks.lead('chief', office.obedient, { ttlMs: TTL_MS });
    await clock.advance(0);
    const changes = mine.changes();
    await changes.next();
    const next = changes.next();
    await new Promise(setImmediate);
    await expect(changes.return?.()).resolves.toEqual({ done: true, value: undefined });
    await expect(next).resolves.toEqual({ done: true, value: undefined });
  });

  it('is told when it changes: here at once, elsewhere within a third of the TTL', async () => {
    const [a, b] = [labelled('a'), labelled('b')];
    const mine = a.lead('chief', office.obedient, { ttlMs: TTL_MS });
    const told: string[] = [];
    const stop = new AbortController();
    const reading = (async () => {
      for await (const holder of mine.changes({ signal: stop.signal })) told.push(holder?.label ?? 'nobody');
    })();
    await clock.advance(0);
    await mine.resign();
    await clock.advance(1_000);
    expect(told.filter((who) => who !== 'nobody')).toEqual(['a', 'a']);
    const theirs = b.lead('chief', new Office().obedient, { ttlMs: TTL_MS });
    await mine.resign();
    await clock.advance(500);
    expect([theirs.isLeader, told.at(-1)]).toEqual([true, 'b']);
    await theirs.resign();
    await clock.advance(500);
    expect([mine.isLeader, told.at(-1)]).toEqual([true, 'a']);
    const [before, timers] = [told.length, world.backend.held];
    await clock.advance(5 * TTL_MS);
    expect([told.length, timers]).toEqual([before, ['chief']]);
    stop.abort();
    await reading;
  });

  it('is told by readings that miss nothing which happens here meanwhile, and end with the reader', async () => {
    const holder = await labelled('b').acquire('chief', { ttlMs: TTL_MS });
    const mine = labelled('a').lead('chief', office.obedient, { ttlMs: TTL_MS });
    const changes = mine.changes();
    await expect(changes.next()).resolves.toMatchObject({ value: { label: 'b' } });
    await holder.release();
    await clock.advance(0);
    await expect(changes.next()).resolves.toMatchObject({ value: { label: 'a' } });
    await changes.return?.();
    await expect(changes.next()).resolves.toEqual({ done: true, value: undefined });
    await mine.close();
    await expect(mine.changes().next()).resolves.toMatchObject({ done: true });
  });

  it('is told no more after a close, though the work goes on', async () => {
    const mine = labelled('a').lead('chief', office.work, { ttlMs: TTL_MS, graceMs: 1_000 });
    await clock.advance(0);
    const changes = mine.changes();
    await expect(changes.next()).resolves.toMatchObject({ value: { label: 'a' } });
    const last = changes.next();
    void mine.close();
    await clock.advance(1_000);
    await expect(last).resolves.toEqual({ done: true, value: undefined });
    office.end();
  });

  it('is nobody that is known of once no reading has gone through for a TTL', async () => {
    await labelled('b').acquire('chief', { ttlMs: TTL_MS });
    const mine = labelled('a').lead('chief', office.obedient, { ttlMs: TTL_MS });
    const told: (Holder | undefined)[] = [];
    void (async () => {
      for await (const holder of mine.changes()) told.push(holder);
    })();
    await clock.advance(0);
    world.backend.breakDown(new Error('down'));
    await clock.advance(TTL_MS - 1);
    expect(told).toHaveLength(1);
    await clock.advance(TTL_MS / 3);
    expect(told).toEqual([expect.objectContaining({ label: 'b' }), undefined]);
    await mine.close();
  });

  it('is refused with a backend that cannot tell', async () => {
    Object.defineProperty(world.backend, 'look', { value: undefined });
    const leadership = locks.lead('chief', office.obedient);
    await clock.advance(0);
    expect(() => leadership.changes()).toThrow(LockConfigurationError);
    await leadership.resign();
    await expect(leadership.leader()).rejects.toThrow('test cannot tell who holds a key');
    await leadership.close();
  });
});
