import type { LockBackend } from 'nestjs-distributed-lock/core';
import { atLeastMs, type Contract, eventually, handled, throughout, timeLimitOf } from '../support/index.js';
import { counted } from './request-counter.js';
import type { Costs } from '../backends/registered-backend.js';
import { demanded, registered } from '../backends/registry.js';
import type { FaultTheme } from './fault-theme.js';

/** Nothing is renewed, and no session gives a sign of life, while we count. ZooKeeper's longest session is half as long again. */
const LONG_MS = Math.min(timeLimitOf(60_000), 80_000);
/** As the registry says. */
const WAIT_MS = 1_500;
/** A machine that stood still for most of that time polls after it. */
const WITHIN = { withinMs: WAIT_MS };
/** Shorter than `FIRST_POLL_MS`: a waiter that is told of releases sends nothing within this time. */
const SILENT_WAIT_MS = 1_000;
/** From this time on, a waiter that is told of releases polls all the same: after half of three seconds at the earliest. */
const FIRST_POLL_MS = 1_500;
/** After so long without an answer, each session of ZooKeeper sends a heartbeat. */
const QUIET_MS = 2_500;
/** Longer than an acquire and a release take, and shorter by far than that quiet. */
const MIN_HOLD_MS = Math.min(atLeastMs(500), 1_200);

export const costs: FaultTheme = {
  title: 'round trips',
  sessionTtlMs: LONG_MS,
  declare({ alone, harness }, name) {
    alone('are those of the registry', async (contract) => {
      const { wait, handOver, reopen: _, ...exact } = demanded(registered(name).costs);
      const polls = typeof wait !== 'number';
      const measured = await measure(contract, {
        polls,
        leastWait: Math.min(...[wait].flat()),
        leastHandOver: Math.min(...[handOver].flat()),
      });
      expect(measured).toMatchObject(exact);
      // A machine that stood still meanwhile counts the heartbeats of two sessions, and the polls of all that time.
      const heartbeats = name.startsWith('zookeeper') ? 2 * Math.floor(measured.tookMs / QUIET_MS) : 0;
      const spare = heartbeats + (polls ? 0 : Math.floor(measured.tookMs / FIRST_POLL_MS));
      within(measured.wait, wait, { spare, late: measured.waitedMs / WAIT_MS });
      within(measured.handOver, handOver, { spare, late: 1 });
    });

    if (harness.boundToConnection === true || harness.transactional === true) return;
    alone('are as many with minHoldMs, and a release when that is over', async (contract) => {
      const { acquire, release, renew, reopen = release } = demanded(registered(name).costs);
      // A session keeps its key by itself. A lease is renewed for the rest of the time.
      const keep = registered(name).sessions === true ? 0 : renew;
      await using backend = await counted(contract);
      const key = contract.key();
      await teach(await contract.backend(), contract, key);
      const service = await backend.service({ defaults: { ttlMs: LONG_MS, minHoldMs: MIN_HOLD_MS } });
      // Started, and yet perhaps connected to no more than a quorum. The other nodes get their requests later.
      const atLeast = (await backend.requests()) + acquire + renew + release;
      await useOnce(service.backend, contract, key);
      await eventually(async () => expect(await backend.requests()).toBeGreaterThanOrEqual(atLeast));
      // ZooKeeper removes the empty container of a key after half a second: to make it again costs further requests.
      const before = await backend.requests();
      const since = performance.now();
      const lock = await service.acquire(key);
      expect(await backend.requests()).toBe(before + acquire);
      await lock.release();
      const closed = before + acquire + keep;
      const soFar = await backend.requests();
      // A machine that stood still for so long counts the release at the end as well.
      const isOver = performance.now() - since >= MIN_HOLD_MS;
      expect(isOver ? [closed, closed + reopen] : [closed]).toContain(soFar);
      await eventually(async () => expect(await backend.requests()).toBe(closed + reopen));
    });
  },
};

/** A server that was restarted does not know the scripts: each is asked for in vain first, on the node of this key. */
async function teach(backend: LockBackend, contract: Contract, key: string): Promise<void> {
  await useOnce(backend, contract, key);
  // Nothing is on its way to any node after that.
  await backend.close();
}

async function useOnce(backend: LockBackend, contract: Contract, key: string): Promise<void> {
  const lease = await contract.win(backend, key, { ttlMs: LONG_MS });
  await lease.renew();
  await lease.release();
}

type Counts = Record<Exclude<keyof Costs, 'reopen'>, number>;

interface Tolerance {
  readonly spare: number;
  /** How many times as long as it should the counting took. */
  readonly late: number;
}

function within(count: number, expected: Costs['wait'], { spare, late }: Tolerance): void {
  const [atLeast, atMost] = typeof expected === 'number' ? [expected, expected] : [expected[0], expected[1] * late];
  expect(count).toBeGreaterThanOrEqual(atLeast);
  expect(count).toBeLessThanOrEqual(atMost + spare);
}

interface Expected {
  readonly polls: boolean;
  readonly leastWait: number;
  /** A server may count the last of these requests late. */
  readonly leastHandOver: number;
}

interface Measured extends Counts {
  readonly waitedMs: number;
  /** The wait and the hand-over. */
  readonly tookMs: number;
}

async function measure(contract: Contract, expected: Expected): Promise<Measured> {
  const { polls, leastWait, leastHandOver } = expected;
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
    const since = performance.now();
    const waiter = handled(ours.acquire(key));
    const waited = async (): Promise<number> => (await backend.requests()) - before;
    await throughout(polls ? WAIT_MS : SILENT_WAIT_MS, () => undefined);
    if (polls) await eventually(async () => expect(await waited()).toBeGreaterThanOrEqual(leastWait), WITHIN);
    const wait = await waited();
    const waitedMs = Math.max(performance.now() - since, WAIT_MS);
    // A poll that is on its way when the key becomes free would have been counted before.
    if (polls) await eventually(async () => expect(await backend.requests()).toBeGreaterThan(before + wait));
    const atHandOver = await backend.requests();
    await Promise.all([holder.release(), waiter]);
    await eventually(async () => expect((await backend.requests()) - atHandOver).toBeGreaterThanOrEqual(leastHandOver));
    const handOver = (await backend.requests()) - atHandOver;
    await (await waiter).release();
    return { wait, handOver, waitedMs, tookMs: performance.now() - since };
  };

  const measured = async (): Promise<Measured> => {
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
