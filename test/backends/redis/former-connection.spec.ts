import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/eventually.js';
import { RedisWorld } from './redis-world.js';

/** How long the network holds an acquisition back: longer than it takes to replace the connection and to lock anew. */
const HELD_BACK_MS = 3_000;

describe('a request of a former connection', () => {
  let world: RedisWorld;
  beforeAll(async () => {
    world = await RedisWorld.start();
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  it.each(['queue', 'plain'] as const)('closes no key, however late it arrives (%s)', async (mode) => {
    const proxy = await world.proxy();
    const locks = world.service({ url: proxy.url, mode, requestTimeoutMs: 600 });
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
});
