import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisClient, type RedisMode } from 'nestjs-distributed-lock/redis';
import { SideBySide } from '../../support/side-by-side.js';
import { expectLocks, expectNeverCut } from './given-client-promises.js';
import { describeRedis } from './redis-world.js';

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];
/** The demand of `getset` on a client: to send nothing late. */
const PROMPT = { enableOfflineQueue: false, maxRetriesPerRequest: 0 };
const EVENTS = ['connecting', 'ready', 'close', 'end', 'error', 'message'];

describeRedis('a client that was given', (world) => {
  const makers: readonly [string, (url: string, options: object) => RedisClient & EventCounter][] = [
    ['ioredis 6', (url, options) => new Redis(url, options)],
    ['ioredis 6, RESP2', (url, options) => new Redis(url, { ...options, protocol: 2 })],
    [
      'ioredis 6, replies of RESP3',
      (url, options) => new Redis(url, { ...options, protocol: 3, replyMapping: 'resp3' }),
    ],
    ['ioredis 6, numbers as text', (url, options) => new Redis(url, { ...options, stringNumbers: true })],
    ['ioredis 6, key prefix', (url, options) => new Redis(url, { ...options, keyPrefix: 'app:' })],
    ['ioredis 5', (url, options) => new Redis5(url, options)],
    ['ioredis 5, key prefix', (url, options) => new Redis5(url, { ...options, keyPrefix: 'app:' })],
  ];

  type Client = RedisClient & EventCounter;
  async function expectLocksAndStays(client: Client, mode: RedisMode, key: string): Promise<void> {
    const listeners = EVENTS.map((event) => client.listenerCount(event));
    await expectLocks(client, mode, { key });
    await expect(client.call('PING')).resolves.toBe('PONG');
    expect(EVENTS.map((event) => client.listenerCount(event))).toEqual(listeners);
  }

  const together = new SideBySide(8);
  for (const mode of MODES) {
    for (const [version, make] of makers) {
      together.it(`${version}: locks, waits, renews, and stays as it was (${mode})`, async () => {
        const client = world.disconnecting(make(world.server.url, mode === 'getset' ? PROMPT : {}));
        await expectLocksAndStays(client, mode, `${version}-${mode}`);
      });
    }
  }
  for (const mode of ['queue', 'plain'] as const) {
    together.it(`that pipelines by itself locks, and stays as it was (${mode})`, async () => {
      const client = world.disconnecting(new Redis(world.server.url, { enableAutoPipelining: true }));
      await expectLocksAndStays(client, mode, `pipelining-${mode}`);
    });
  }
  together.run();

  it('is never cut, also when an answer is overdue', async () => {
    const client = world.disconnecting(new Redis(world.server.url));
    await expectNeverCut(world, client, () => client.client('ID'));
  });

  it('that has not connected yet is idle, and is used as it is', async () => {
    const client = world.disconnecting(new Redis(world.server.url, { lazyConnect: true }));
    const service = world.closing(new LockService(redis({ client })));
    expect(service.health).toEqual({ status: 'idle' });
    await service.withLock('key', () => undefined);
    expect(service.health).toEqual({ status: 'up' });
  });

  it('that was ended is an error at once', async () => {
    const client = new Redis(world.server.url);
    const service = world.closing(new LockService(redis({ client })));
    await service.withLock('key', () => undefined);
    await client.quit();
    await expect(service.tryAcquire('key')).rejects.toThrow(/Connection is closed/);
    expect(service.health.status).toBe('down');
  });
});

interface EventCounter {
  listenerCount(event: string): number;
}
