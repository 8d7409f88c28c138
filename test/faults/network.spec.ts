import { describe, expect, it } from '@jest/globals';
import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { Redis } from 'ioredis';
import { wantedOf } from '../backends/describe-backend.js';
import { aborted, failureOf, SLACK_MS, throughout } from '../conformance/contract.js';
import { eventually } from '../support/eventually.js';
import { ProxiedRedis } from './proxied-redis.js';

/** How a request looks on the wire: what acquires and what gives back, in each mode. */
const WIRE = {
  queue: { acquire: 'EVALSHA', release: 'EVALSHA' },
  plain: { acquire: 'NX', release: 'EVALSHA' },
} satisfies Partial<Record<RedisMode, object>>;

const LONG_TTL_MS = 20_000;

const MODES = { 'redis-queue': 'queue', 'redis-plain': 'plain' } as const;

for (const name of wantedOf(['redis-queue', 'redis-plain'])) {
  describe(`the network, with ${name}`, () => faults(MODES[name]));
}

function faults(mode: keyof typeof WIRE): void {
  const { acquire, release } = WIRE[mode];

  it('A5: request of acquire not delivered: asked again, and granted once', async () => {
    await using world = await ProxiedRedis.start(mode);
    const { proxy } = world;
    const service = await world.proxied();
    proxy.drop('up');
    const sent = new Promise<void>((resolve) => proxy.onRequest(() => resolve()));
    const acquiring = service.acquire('k', { ttlMs: LONG_TTL_MS, waitMs: 10_000 });
    await sent;
    proxy.resume();
    const lock = await acquiring;
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await expect(world.leftovers('k')).resolves.toEqual([]);
  });

  it('A5: no request delivered at all: an error in time, and nothing left when the network is back', async () => {
    await using world = await ProxiedRedis.start(mode);
    const service = await world.proxied();
    world.proxy.pause('up');
    const since = performance.now();
    const error = await failureOf(service.acquire('k', { ttlMs: LONG_TTL_MS, waitMs: 300 }));
    expect(error).toBeInstanceOf(LockBackendError);
    expect(performance.now() - since).toBeLessThan(300 + SLACK_MS);
    world.proxy.resume();
    await eventually(async () => expect(await world.leftovers('k')).toEqual([]));
    const lock = await world.direct().acquire('k', { waitMs: 2_000 });
    await lock.release();
  });

  it('A6: reply of acquire lost, command executed: no waiting for our own ghost', async () => {
    await using world = await ProxiedRedis.start(mode);
    const service = await world.proxied();
    const lost = world.proxy.dropReplyAfter(acquire);
    const since = performance.now();
    const acquiring = service.acquire('k', { ttlMs: LONG_TTL_MS, waitMs: 10_000 });
    await lost;
    const lock = await acquiring;
    expect(performance.now() - since).toBeLessThan(2_000);
    expect(lock.isHeld).toBe(true);
    await lock.release();
    await expect(world.leftovers('k')).resolves.toEqual([]);
  });

  it('A6: the same without waiting: an error, and the ghost is gone long before its TTL', async () => {
    await using world = await ProxiedRedis.start(mode);
    const service = await world.proxied();
    const lost = world.proxy.dropReplyAfter(acquire);
    const trying = failureOf(service.tryAcquire('k', { ttlMs: LONG_TTL_MS }));
    await lost;
    await expect(trying).resolves.toBeInstanceOf(LockBackendError);
    await eventually(async () => expect(await world.leftovers('k')).toEqual([]), { withinMs: 3_000 });
  });

  it('A7: reply of release lost: the result of the work stands, nothing is reported lost, the key is free', async () => {
    await using world = await ProxiedRedis.start(mode);
    const losses: string[] = [];
    const service = await world.proxied({ observers: [{ lost: ({ key }) => losses.push(key) }] });
    let lost: Promise<void> | undefined;
    const result = await service.withLock(
      'k',
      () => {
        lost = world.proxy.dropReplyAfter(release);
        return 'sold';
      },
      { ttlMs: LONG_TTL_MS },
    );
    await lost;
    expect(result).toBe('sold');
    expect(losses).toEqual([]);
    await expect(world.leftovers('k')).resolves.toEqual([]);
  });

  it('A7: request of release not delivered: the key is free soon after the network is back, long before its TTL', async () => {
    await using world = await ProxiedRedis.start(mode);
    const failures: string[] = [];
    const service = await world.proxied({
      observers: [{ backendFailed: ({ operation }) => failures.push(operation) }],
    });
    const lock = await service.acquire('k', { ttlMs: LONG_TTL_MS, watchdog: false });
    world.proxy.drop();
    await lock.release();
    expect(failures).toEqual(['release']);
    expect(await world.leftovers('k')).toHaveLength(1);
    world.proxy.resume();
    await eventually(async () => expect(await world.leftovers('k')).toEqual([]));
  });

  it('A8: a client that sends again by itself: a release that runs twice does not touch the next holder', async () => {
    await using world = await ProxiedRedis.start(mode);
    const client = new Redis(world.proxiedUrl, { retryStrategy: () => 10 });
    client.on('error', () => undefined);
    const service = new LockService(redis({ client, mode }));
    const warmUp = await service.acquire('warm-up');
    await warmUp.release();
    const lock = await service.acquire('k', { ttlMs: LONG_TTL_MS });
    const lost = world.proxy.dropReplyAfter(release);
    const next = world.direct().acquire('k', { ttlMs: LONG_TTL_MS });
    await Promise.all([lost, lock.release()]);
    const present = await next;
    await eventually(() => client.status === 'ready');
    await client.ping();
    expect(present.isHeld).toBe(true);
    await expect(world.leftovers('k')).resolves.not.toEqual([]);
    await expect(service.tryAcquire('k')).resolves.toBeNull();
    await present.release();
    await service.close();
    client.disconnect();
  });

  it('A8: a client that sends again by itself: an acquire that runs twice is one grant', async () => {
    await using world = await ProxiedRedis.start(mode);
    const client = new Redis(world.proxiedUrl, { retryStrategy: () => 10 });
    client.on('error', () => undefined);
    const service = new LockService(redis({ client, mode }));
    const warmUp = await service.acquire('warm-up');
    await warmUp.release();
    const lost = world.proxy.dropReplyAfter(acquire);
    const acquiring = service.acquire('k', { ttlMs: LONG_TTL_MS, waitMs: 5_000 });
    await lost;
    const lock = await acquiring;
    await lock.release();
    await eventually(async () => expect(await world.leftovers('k')).toEqual([]));
    await service.close();
    client.disconnect();
  });

  it('A9: reply of acquire later than the lease: never returned as held', async () => {
    await using world = await ProxiedRedis.start(mode);
    const service = await world.proxied();
    const ttlMs = 300;
    const delivered = world.proxy.delayReplyOf(acquire, ttlMs + 100);
    const lock = await service.acquire('k', { ttlMs, waitMs: 5_000 });
    expect(lock.isHeld).toBe(true);
    await expect(world.direct().tryAcquire('k')).resolves.toBeNull();
    await delivered;
    await lock.release();

    const late = world.proxy.delayReplyOf(acquire, ttlMs + 100);
    await expect(failureOf(service.tryAcquire('k', { ttlMs }))).resolves.toBeInstanceOf(LockBackendError);
    await late;
    await eventually(async () => expect(await world.leftovers('k')).toEqual([]));
  });

  it('A10: a server slow to renew, 0.4 of a TTL each time: the lock stays held', async () => {
    await using world = await ProxiedRedis.start(mode);
    const service = await world.proxied();
    const ttlMs = 600;
    const lock = await service.acquire('k', { ttlMs });
    // With one renewal in flight at a time, half a TTL is the limit.
    world.proxy.delay(ttlMs / 5);
    await throughout(ttlMs * 4, () => expect(lock.isHeld).toBe(true));
    world.proxy.delay(0);
    await lock.release();
  });

  it('A11: renewals that fail for a while: jeopardy, then held again, and no alarm', async () => {
    await using world = await ProxiedRedis.start(mode);
    const events: string[] = [];
    const note = (event: string) => () => void events.push(event);
    const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
    const service = await world.proxied({ observers });
    const lock = await service.acquire('k', { ttlMs: 3_000 });
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

  it('A12: renewals that fail until the end: told by our own timer, and nothing then blocks the release', async () => {
    await using world = await ProxiedRedis.start(mode);
    const service = await world.proxied();
    const ttlMs = 500;
    const lock = await service.acquire('k', { ttlMs });
    world.proxy.pause();
    const pausedAt = performance.now();
    expect((await aborted(lock.signal)) - pausedAt).toBeLessThan(ttlMs);
    const lostAt = performance.now();
    await lock.release();
    expect(performance.now() - lostAt).toBeLessThan(SLACK_MS);
    const next = await world.direct().acquire('k', { ttlMs: LONG_TTL_MS, waitMs: 2_000 });
    // All that was sent meanwhile arrives now.
    world.proxy.resume();
    await eventually(async () => expect(await service.tryAcquire('k')).toBeNull(), { withinMs: 10_000 });
    expect(next.isHeld).toBe(true);
    await next.release();
  });
}
