import { LockBackendError, type LockHandle } from 'nestjs-distributed-lock/core';
import { aborted, type Contract, eventually, failureOf, SLACK_MS, type Suite, throughout } from '../support/index.js';
import { atLeastMs, timeLimitOf } from '../support/machine.js';
import { ProxiedBackend } from './proxied-backend.js';
import type { RegisteredBackend, Wire } from '../backends/registered-backend.js';
import { demanded, registered } from '../backends/registry.js';
import type { FaultTheme } from './fault-theme.js';
import { transfers } from './transfers.js';

/** Long enough for a busy machine, and short enough to wait for its end. */
const SESSION_TTL_MS = Math.ceil(atLeastMs(3_000) / 1_000) * 1_000;
/** A busy machine may stand still for almost half of it. */
const SLOW_TTL_MS = atLeastMs(5_000);
const LONG_TTL_MS = 20_000;

export const network: FaultTheme = {
  title: 'the network',
  sessionTtlMs: SESSION_TTL_MS,
  declare(suite, name) {
    const wire = demanded(registered(name).wire);
    asking(suite, wire);
    givingBack(suite, wire);
    renewing(suite, registered(name));
    transfers(suite);
  },
};

function asking({ harness, it }: Suite, { acquire }: Wire): void {
  it('A5: request of acquire not delivered: asked again, and granted once', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const { proxy } = world;
    const key = contract.key();
    const service = await world.proxied(key);
    proxy.drop('up');
    const sent = new Promise<void>((resolve) => proxy.onRequest(() => resolve()));
    const acquiring = service.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
    await sent;
    proxy.resume();
    const lock = await acquiring;
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await expect(harness.leftovers(key)).resolves.toEqual([]);
  });

  it('A5: no request delivered at all: an error in time, and nothing left when the network is back', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const service = await world.proxied(key);
    world.proxy.pause('up');
    const since = performance.now();
    const error = await failureOf(service.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: 300 }));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toTakeLessThan(300 + SLACK_MS);
    world.proxy.resume();
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    await (await (await contract.service()).acquire(key, { waitMs: timeLimitOf(2_000) })).release();
  });

  it('A6: reply of acquire lost, command executed: no waiting for our own ghost', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const service = await world.proxied(key);
    const lost = world.proxy.dropReplyAfter(acquire);
    // Who waits for a ghost waits for its TTL, and so in vain.
    const acquiring = service.acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
    await lost;
    const lock = await acquiring;
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await expect(harness.leftovers(key)).resolves.toEqual([]);
  });

  it('A6: the same without waiting: the grant or an error, and the ghost is gone long before its TTL', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const key = contract.key();
    const service = await world.proxied(key);
    const lost = world.proxy.dropReplyAfter(acquire);
    const trying = service.tryAcquire(key, { ttlMs: LONG_TTL_MS }).catch((error: unknown) => error);
    await lost;
    await endsWell(await trying, contract);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]), { withinMs: 3_000 });
  });

  it('A9: reply of acquire later than the lease: never returned as held', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const [key, ttlMs] = [contract.key(), contract.harness.shortTtlMs];
    const service = await world.proxied(key);
    void world.proxy.delayReplyOf(acquire, ttlMs + 100);
    const other = await contract.service();
    const lock = await service.acquire(key, { ttlMs, waitMs: timeLimitOf(10_000) });
    expect(lock.isHeld).toBe(true);
    const stolen = await other.tryAcquire(key);
    // On a busy machine the short lease may have ended meanwhile, and is known to have.
    expect([stolen !== null, lock.isHeld]).not.toEqual([true, true]);
    await stolen?.release();
    await lock.release();

    void world.proxy.delayReplyOf(acquire, ttlMs + 100);
    await endsWell(await service.tryAcquire(key, { ttlMs }).catch((error: unknown) => error), contract);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });
}

/** A lock that is held, or an error that says that the backend gave no answer. */
async function endsWell(outcome: unknown, { harness }: Contract): Promise<void> {
  if (outcome instanceof LockBackendError) return;
  // Its former connection, and the lock with it, may be ending just now.
  if (outcome === null && harness.boundToConnection === true) return;
  expect(outcome).toMatchObject({ isHeld: true });
  await (outcome as LockHandle).release();
}

function givingBack({ harness, it }: Suite, { release }: Wire): void {
  const { transactional = false } = harness;
  const verdict = transactional ? 'it may have been committed, and is no result' : 'the result of the work stands';

  it(`A7: reply of release lost: ${verdict}, nothing is reported lost, the key is free`, async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const losses: string[] = [];
    const key = contract.key();
    const service = await world.proxied(key, { observers: [{ lost: (event) => losses.push(event.key) }] });
    let lost: Promise<void> | undefined;
    const sell = (): string => {
      lost = world.proxy.dropReplyAfter(release);
      return 'sold';
    };
    const selling = service.withLock(key, sell, { ttlMs: LONG_TTL_MS });
    await (transactional ? expect(selling).rejects.toThrow() : expect(selling).resolves.toBe('sold'));
    await lost;
    expect(losses).toEqual([]);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    await (await (await contract.service()).acquire(key, { waitMs: timeLimitOf(2_000) })).release();
  });
}

function renewing({ harness, it, thorough }: Suite, { sessions = false }: RegisteredBackend): void {
  thorough.it('A10: a server slow to renew, 0.2 of a TTL each time: the lock stays held', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const { shortTtlMs } = contract.harness;
    const ttlMs = sessions ? shortTtlMs : Math.max(SLOW_TTL_MS, shortTtlMs);
    // By default a second without an answer is silence, and a busy machine adds to the delay.
    const service = await world.proxied(undefined, {}, ttlMs);
    const lock = await service.acquire(contract.key(), { ttlMs });
    // With one renewal in flight at a time, half a TTL is the limit.
    world.proxy.delay(ttlMs * 0.1);
    await throughout(ttlMs * 1.4, () => {
      lock.signal.throwIfAborted();
      expect(lock.isHeld).toBe(true);
    });
    world.proxy.delay(0);
    await lock.release();
  });

  if (harness.boundToConnection !== true) {
    it('A11: renewals that fail for a while: jeopardy, then held again, and no alarm', async (contract) => {
      await using world = await ProxiedBackend.start(contract);
      const events: string[] = [];
      const note = (event: string) => () => void events.push(event);
      const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
      const service = await world.proxied(undefined, { observers });
      const lock = await service.acquire(contract.key(), { ttlMs: atLeastMs(3_000) });
      world.proxy.refuse();
      world.proxy.reset();
      await eventually(() => lock.state === 'jeopardy');
      expect(lock.isHeld).toBe(true);
      await world.proxy.accept();
      await eventually(() => lock.state === 'held');
      expect(events).toEqual(['jeopardy', 'safe']);
      expect(lock.signal.aborted).toBe(false);
      await lock.release();
    });
  }

  it('A12: renewals that fail until the end: told by our own timer, and nothing then blocks the release', async (contract) => {
    await using world = await ProxiedBackend.start(contract);
    const [key, ttlMs] = [contract.key(), contract.processTtlMs];
    const service = await world.proxied(key);
    const lock = await service.acquire(key, { ttlMs });
    world.proxy.pause();
    const pausedAt = performance.now();
    expect((await aborted(lock.signal)) - pausedAt).toTakeLessThan(ttlMs + SLACK_MS);
    const lostAt = performance.now();
    await lock.release();
    expect(performance.now() - lostAt).toTakeLessThan(SLACK_MS);
    const next = await (await contract.service()).acquire(key, { ttlMs: LONG_TTL_MS, waitMs: timeLimitOf(10_000) });
    // All that was sent meanwhile arrives now.
    world.proxy.resume();
    await eventually(async () => expect(await service.tryAcquire(key)).toBeNull(), { withinMs: 10_000 });
    expect(next.isHeld).toBe(true);
    await next.release();
  });
}
