import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { atLeastMs, eventually } from '../../support/index.js';
import { describeRedis } from './redis-world.js';

/** How long the network holds an acquisition back: longer than it takes to replace the connection and to lock anew. */
const HELD_BACK_MS = atLeastMs(3_000);

describeRedis('a request of a former connection', (world) => {
  it.each(['queue', 'plain'] as const)('closes no key, however late it arrives (%s)', async (mode) => {
    const proxy = await world.proxy();
    const locks = world.service({ url: proxy.url, mode, requestTimeoutMs: HELD_BACK_MS / 5 });
    await locks.withLock('warm-up', () => undefined);
    // The connection has told its number by now.
    await eventually(async () => expect((await world.server.commandStats()).get('client|id')).toBeGreaterThan(0));
    const before = proxy.connections;
    proxy.delay(HELD_BACK_MS, 'up');
    const lock = locks.acquire('key', { ttlMs: 20_000, waitMs: 10_000 });
    await eventually(() => expect(locks.health.status).toBe('down'));
    proxy.delay(0);
    await (await lock).release();
    await eventually(async () => expect(await world.operator.exists('lock:{key}')).toBe(0));
    // Long enough for what was held back to arrive.
    await new Promise((resolve) => setTimeout(resolve, HELD_BACK_MS));
    expect(await world.operator.exists('lock:{key}')).toBe(0);
    await expect(world.service().withLock('key', () => 'in', { waitMs: 0 })).resolves.toBe('in');
    expect(before).toBeGreaterThan(0);
  });

  it.each(['queue', 'plain'] as const)('of a given client closes no key after its TTL either (%s)', async (mode) => {
    const proxy = await world.proxy();
    const client = world.disconnecting(new Redis(proxy.url));
    client.on('error', () => undefined);
    const [requestTimeoutMs, ttlMs] = [HELD_BACK_MS / 10, HELD_BACK_MS * 0.3];
    const patience = { requestTimeoutMs, patienceMs: requestTimeoutMs };
    const locks = world.closing(new LockService(redis({ client, mode, ...patience })));
    await locks.withLock('warm-up', () => undefined);
    proxy.delay(HELD_BACK_MS, 'up');
    // The acquisition arrives long after the end of the lease that it asks for.
    await expect(locks.acquire('key', { ttlMs, waitMs: requestTimeoutMs })).rejects.toThrow();
    proxy.delay(0);
    const ghost = async (): Promise<number> => world.operator.exists('lock:{key}');
    const stats = async (): Promise<number> => (await world.server.commandStats()).get('evalsha') ?? 0;
    const before = await stats();
    await eventually(async () => expect(await stats()).toBeGreaterThan(before), { withinMs: 2 * HELD_BACK_MS });
    await eventually(async () => expect(await ghost()).toBe(0), { withinMs: 400 });
  });
});
