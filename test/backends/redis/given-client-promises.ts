import { LockBackendError, LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { atLeastMs, eventually, SLACK_MS, timeLimitOf } from '../../support/index.js';
import type { RedisWorld } from './redis-world.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(600);

type GivenClient = NonNullable<RedisOptions['client']>;

interface LockedKey {
  readonly key: string;
  /** Called while the key is held. */
  readonly whileHeld?: () => Promise<void>;
}

/** Two services on one client lock a key of their own, wait, renew and hand over, and close. */
export async function expectLocks(client: GivenClient, mode: RedisMode, { key, whileHeld }: LockedKey): Promise<void> {
  const [a, b] = [new LockService(redis({ client, mode })), new LockService(redis({ client, mode }))];
  const first = await a.acquire(key, { ttlMs: TTL_MS });
  const waiting = b.acquire(key, { waitMs: timeLimitOf(10_000) });
  await expect(b.tryAcquire(`${key}-other`)).resolves.not.toBeNull();
  await whileHeld?.();
  await expect(a.keys().next()).resolves.toMatchObject({ done: false });
  await eventually(async () => expect((await a.look(key)).holder).toMatchObject({ pid: process.pid }));
  await new Promise((resolve) => setTimeout(resolve, TTL_MS * 1.5));
  expect(first.isHeld).toBe(true);
  const since = performance.now();
  await first.release();
  const second = await waiting;
  expect(performance.now() - since).toTakeLessThan(SLACK_MS);
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  await Promise.all([a.close(), b.close()]);
}

/** A server that stands still fails the requests, and leaves the client its connection. */
export async function expectNeverCut(
  world: RedisWorld,
  client: GivenClient,
  askForId: () => Promise<unknown>,
): Promise<void> {
  const id = await askForId();
  const requestTimeoutMs = timeLimitOf(100);
  const service = world.closing(new LockService(redis({ client, requestTimeoutMs })));
  await service.withLock('warm', () => undefined);
  await world.server.whileFrozen(async () => {
    await expect(service.acquire('key', { waitMs: timeLimitOf(300) })).rejects.toBeInstanceOf(LockBackendError);
    expect(service.health).toMatchObject({ status: 'down', detail: `no answer within ${requestTimeoutMs} ms` });
  });
  await eventually(async () => expect(await service.withLock('other', () => 'in')).toBe('in'));
  expect(service.health).toEqual({ status: 'up' });
  await expect(askForId()).resolves.toBe(id);
  await eventually(async () => expect(await world.operator.exists('lock:{key}')).toBe(0));
}
