import { atLeastMs, RedisServer } from '../../support/index.js';
import { KeyRoutingProxy } from '../../support/key-routing-proxy.js';
import { RedisWorld } from './redis-world.js';
import '../../support/slow-machine.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(900);

/** As twemproxy does: https://github.com/twitter/twemproxy/pull/60 */
describe('a proxy that sends a command to the server of its first key', () => {
  let world: RedisWorld;
  let other: RedisServer;
  beforeAll(async () => {
    [world, other] = [await RedisWorld.start(), await RedisServer.start()];
  });
  afterEach(() => world.endTest());
  afterAll(() => Promise.all([world.stop(), other.stop()]));

  it.each(['queue', 'plain'] as const)('lets nobody else have keys that were locked at once (%s)', async (mode) => {
    const proxy = world.closing(await KeyRoutingProxy.start([world.server.url, other.url]));
    const [a, b] = [world.service({ url: proxy.url, mode }), world.service({ url: proxy.url, mode })];
    for (let round = 0; round < 3; round += 1) {
      const keys = Array.from({ length: 20 }, (_, i) => `${mode}-${round}-${i}`);
      const held = await Promise.all(keys.map((key) => a.acquire(key, { ttlMs: TTL_MS })));
      // Renewals share commands as well.
      await new Promise((resolve) => setTimeout(resolve, TTL_MS + 100));
      expect(held.filter((lock) => !lock.isHeld)).toEqual([]);
      const takenKeys: string[] = [];
      for (const key of keys) if (await b.tryAcquire(key)) takenKeys.push(key);
      expect(takenKeys).toEqual([]);
      await Promise.all(held.map((lock) => lock.release()));
    }
    expect(a.health).toMatchObject({ detail: expect.stringContaining('the server of its first key') });
  });

  it('is no single server, whose keys share commands after a test', async () => {
    await world.untilKeysShareCommands(world.service());
  });
});
