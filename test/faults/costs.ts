import { describe, expect, it } from '@jest/globals';
import { type Contract, handled, throughout } from '../conformance/contract.js';
import { type BackendName, onBackends } from './on-backends.js';
import { counted } from './request-counter.js';

/** Nothing is renewed, and no session gives a sign of life, while we count. */
const LONG_MS = 60_000;
const WAIT_MS = 1_500;

/** Round trips: each is one write, however many commands it has. */
interface Costs {
  /** Of a key that is free and was used before. */
  readonly acquire: number;
  readonly release: number;
  readonly renew: number;
  /** To ask once for a key that is held. */
  readonly refused: number;
  /** To wait for one and a half seconds: to get into line, or what it takes at least and at most to ask again and again. */
  readonly wait: number | readonly [atLeast: number, atMost: number];
  /** The release, and whatever it takes until the one who waits has the lease. Who polls may ask once in vain meanwhile. */
  readonly handOver: number | readonly [atLeast: number, atMost: number];
}

/** Twenty questions a second, give or take half; a busy machine asks less often. */
const POLLS = [5, 61] as const;

const COSTS = {
  'redis-queue': { acquire: 1, release: 1, renew: 1, refused: 1, wait: 1, handOver: 2 },
  'redis-sentinel': { acquire: 1, release: 1, renew: 1, refused: 1, wait: 1, handOver: 2 },
  'redis-cluster': { acquire: 1, release: 1, renew: 1, refused: 1, wait: 1, handOver: 2 },
  'redis-plain': { acquire: 1, release: 1, renew: 1, refused: 1, wait: POLLS, handOver: [2, 3] },
  'redis-getset': { acquire: 2, release: 2, renew: 2, refused: 1, wait: POLLS, handOver: [4, 5] },
  // Of five nodes, one to each.
  redlock: { acquire: 5, release: 5, renew: 5, refused: 5, wait: [25, 305], handOver: [10, 15] },
  'memcached-meta': { acquire: 1, release: 1, renew: 1, refused: 1, wait: POLLS, handOver: [2, 3] },
  'memcached-classic': { acquire: 1, release: 1, renew: 1, refused: 1, wait: POLLS, handOver: [2, 3] },
  zookeeper: { acquire: 1, release: 1, renew: 1, refused: 3, wait: 2, handOver: 2 },
  'zookeeper-simple': { acquire: 1, release: 2, renew: 1, refused: 2, wait: 2, handOver: 3 },
  // The watch of the place before ours is a request each, to begin and to end.
  etcd: { acquire: 1, release: 1, renew: 1, refused: 1, wait: 2, handOver: 3 },
  postgres: { acquire: 1, release: 1, renew: 1, refused: 1, wait: 2, handOver: 2 },
  mariadb: { acquire: 1, release: 1, renew: 1, refused: 2, wait: [10, 122], handOver: [2, 4] },
  // A transaction with a savepoint, and a waiter that sleeps on the server.
  'postgres-row': { acquire: 6, release: 1, renew: 1, refused: 5, wait: [3, 30], handOver: [2, 15] },
  'mariadb-row': { acquire: 6, release: 3, renew: 1, refused: 5, wait: [3, 30], handOver: [2, 15] },
  'postgres-session': { acquire: 2, release: 1, renew: 1, refused: 1, wait: POLLS, handOver: [3, 4] },
  'mariadb-session': { acquire: 2, release: 1, renew: 1, refused: 1, wait: POLLS, handOver: [3, 4] },
} as const satisfies Partial<Record<BackendName, Costs>>;

describe('round trips', () => {
  onBackends(
    Object.keys(COSTS) as (keyof typeof COSTS)[],
    (contract, name) => {
      it('are those of the table', async () => {
        const measured = await measure(contract);
        const { wait, handOver, ...exact }: Costs = COSTS[name];
        expect(measured).toMatchObject(exact);
        within(measured.wait, wait);
        within(measured.handOver, handOver);
      });
    },
    { sessionTtlMs: LONG_MS },
  );
});

function within(count: number, expected: Costs['wait']): void {
  const [atLeast, atMost] = typeof expected === 'number' ? [expected, expected] : expected;
  expect(count).toBeGreaterThanOrEqual(atLeast);
  expect(count).toBeLessThanOrEqual(atMost);
}

async function measure(contract: Contract): Promise<Record<keyof Costs, number>> {
  await using backend = await counted(contract);
  const options = { defaults: { ttlMs: LONG_MS, waitMs: LONG_MS } };
  const [ours, theirs] = [await backend.service(options), await backend.service(options)];
  const key = contract.key();
  const during = async (work: () => Promise<unknown>): Promise<number> => {
    const before = await backend.requests();
    await work();
    return (await backend.requests()) - before;
  };
  const waitForTheirs = async () => {
    const holder = await theirs.acquire(key);
    const before = await backend.requests();
    const waiter = handled(ours.acquire(key));
    await throughout(WAIT_MS, () => undefined);
    const wait = (await backend.requests()) - before;
    const handOver = await during(() => Promise.all([holder.release(), waiter]));
    await (await waiter).release();
    return { wait, handOver };
  };

  const measured = async (): Promise<Record<keyof Costs, number>> => {
    let lock = await ours.acquire(key);
    await lock.release();
    const acquire = await during(async () => (lock = await ours.acquire(key)));
    const release = await during(() => lock.release());
    const lease = await contract.win(ours.backend, key, { ttlMs: LONG_MS });
    const renew = await during(() => lease.renew());
    await lease.release();
    lock = await theirs.acquire(key);
    const refused = await during(() => ours.tryAcquire(key));
    await lock.release();
    return { acquire, release, renew, refused, ...(await waitForTheirs()) };
  };
  // The first time opens connections and teaches the servers scripts; and Redlock's new servers are known to be new for a while.
  await measured();
  return await measured();
}
