import type { LockService } from 'nestjs-distributed-lock/core';
import { handled, type Suite } from '../support/index.js';

const TTL_MS = 10_000;

export function handOff({ harness, it }: Suite): void {
  it('serves the callers of one process in the order in which they came, with growing tokens', async (contract) => {
    const service = await contract.service();
    const served = await visits(service, contract.key(), 20);
    expect(served.map(({ place }) => place)).toEqual(Array.from({ length: 20 }, (_, place) => place));
    expect(growing(served.map(({ token }) => token))).toBe(true);
  });

  if (harness.transactional === true) {
    it('does not happen: every caller gets a lease of its own', async (contract) => {
      const origins: string[] = [];
      const service = await contract.service({ observers: [{ acquired: ({ from }) => origins.push(from) }] });
      await visits(service, contract.key(), 4);
      expect(origins).toEqual(['backend', 'backend', 'backend', 'backend']);
    });
  } else {
    it('passes one lease on, instead of asking the server each time', async (contract) => {
      const origins: string[] = [];
      const service = await contract.service({
        maxHandOffMs: Infinity,
        observers: [{ acquired: ({ from }) => origins.push(from) }],
      });
      await visits(service, contract.key(), 10);
      expect(origins).toEqual(['backend', ...Array.from({ length: 9 }, () => 'hand-off')]);
    });

    it('ends after maxHandOffs, so that other processes get their turn', async (contract) => {
      const origins: string[] = [];
      const service = await contract.service({
        maxHandOffs: 2,
        maxHandOffMs: Infinity,
        observers: [{ acquired: ({ from }) => origins.push(from) }],
      });
      const served = await visits(service, contract.key(), 7);
      const lease = ['backend', 'hand-off', 'hand-off'];
      expect(origins).toEqual([...lease, ...lease, 'backend']);
      expect(growing(served.map(({ token }) => token))).toBe(true);
    });
  }

  it('lets the last one out give the lease back', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    await visits(ours, key, 5);
    await expect(harness.leftovers(key)).resolves.toEqual([]);
    await (await theirs.acquire(key)).release();
  });

  it('does not happen between callers who want different TTLs', async (contract) => {
    const origins: string[] = [];
    const service = await contract.service({ observers: [{ acquired: ({ from }) => origins.push(from) }] });
    const key = contract.key();
    const lock = await service.acquire(key, { ttlMs: TTL_MS });
    const next = handled(service.acquire(key, { ttlMs: TTL_MS + 1_000, waitMs: 5_000 }));
    await lock.release();
    await (await next).release();
    expect(origins).toEqual(['backend', 'backend']);
  });
}

interface Visit {
  readonly place: number;
  readonly token: bigint;
}

async function visits(service: LockService, key: string, count: number): Promise<Visit[]> {
  const served: Visit[] = [];
  const visit = (place: number): Promise<unknown> =>
    service.withLock(key, ({ fencingToken }) => served.push({ place, token: fencingToken }), {
      ttlMs: TTL_MS,
      waitMs: 10_000,
    });
  await Promise.all(Array.from({ length: count }, (_, place) => visit(place)));
  return served;
}

function growing(tokens: readonly bigint[]): boolean {
  return tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? token));
}
