import { Redis as Valkey } from 'iovalkey';
import { LockService } from 'nestjs-distributed-lock/core';
import { type NodeRedisClient, redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { redlock } from 'nestjs-distributed-lock/redlock';
import { createClient, createClientPool, RESP_TYPES } from 'redis';
import { createClient as createClient5, RESP_TYPES as RESP_TYPES5 } from 'redis-5';
import { aborted, eventually } from '../../support/index.js';
import { SideBySide } from '../../support/side-by-side.js';
import { expectLocks, expectNeverCut } from './given-client-promises.js';
import { describeRedis } from './redis-world.js';

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];
/** The demand of `getset` on a client: to send nothing late. */
const PROMPT = { disableOfflineQueue: true, maintNotifications: 'disabled' } as const;
const EVENTS = ['connect', 'ready', 'reconnecting', 'end', 'error'];
const BUFFERS = { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.SIMPLE_STRING]: Buffer, [RESP_TYPES.NUMBER]: String };
const BUFFERS5 = { [RESP_TYPES5.BLOB_STRING]: Buffer, [RESP_TYPES5.NUMBER]: String };

type Client = NodeRedisClient & { listenerCount(event: string): number };
type Options = { readonly url: string } & Partial<typeof PROMPT>;

describeRedis('a client of node-redis that was given', (world) => {
  /** Ends with the test. */
  const ending = <C extends Client>(client: C): C => {
    world.closing({ close: async () => client.isOpen && client.destroy() });
    client.on('error', () => undefined);
    return client;
  };
  const makers: readonly [string, (options: Options) => Client][] = [
    ['6', (options) => createClient(options)],
    ['6, RESP2', (options) => createClient({ ...options, RESP: 2 })],
    ['6, Buffers', (options) => createClient({ ...options, commandOptions: { typeMapping: BUFFERS } })],
    ['6, Buffers of a proxy', (options) => createClient(options).withTypeMapping(BUFFERS)],
    ['6, key prefix', (options) => createClient({ ...options, keyPrefix: 'app:' })],
    ['6, short queue', (options) => createClient({ ...options, commandsQueueMaxLength: 50 })],
    ['5', (options) => createClient5(options)],
    ['5, RESP3', (options) => createClient5({ ...options, RESP: 3 })],
    ['5, Buffers', (options) => createClient5({ ...options, commandOptions: { typeMapping: BUFFERS5 } })],
  ];

  const together = new SideBySide(8);
  for (const mode of MODES) {
    for (const [version, make] of makers) {
      together.it(`version ${version}: locks, waits, renews, and stays as it was (${mode})`, async () => {
        const client = ending(make({ url: world.server.url, ...(mode === 'getset' ? PROMPT : {}) }));
        await client.connect();
        const listeners = EVENTS.map((event) => client.listenerCount(event));
        const key = `${version}-${mode}`;
        const whileHeld = async () => expect(await world.operator.exists(`lock:{${key}}`)).toBe(1);
        await expectLocks(client, mode, { key, whileHeld });
        expect(client.isReady).toBe(true);
        expect(String(await client.sendCommand(['PING']))).toBe('PONG');
        expect(EVENTS.map((event) => client.listenerCount(event))).toEqual(listeners);
      });
    }
  }
  together.run();

  describe.each<[string, (options: object) => Client]>([
    ['6', (options) => createClient({ url: world.server.url, ...options })],
    ['5', (options) => createClient5({ url: world.server.url, ...options })],
  ])('version %s', (_version, make) => {
    it('is never cut, also when an answer is overdue', async () => {
      const client = ending(make({}));
      await client.connect();
      await expectNeverCut(world, client, () => client.sendCommand(['CLIENT', 'ID']));
    });

    it('that has not connected yet is idle, and is connected by the first request', async () => {
      const client = ending(make({}));
      const service = world.closing(new LockService(redis({ client })));
      expect(service.health).toEqual({ status: 'idle' });
      await service.withLock('key', () => undefined);
      expect([service.health.status, client.isReady]).toEqual(['up', true]);
    });

    it('that was ended is an error at once, until the application connects it again', async () => {
      const client = ending(make({}));
      await client.connect();
      const service = world.closing(new LockService(redis({ client })));
      await service.withLock('key', () => undefined);
      client.destroy();
      await expect(service.tryAcquire('key')).rejects.toThrow(/Connection is closed/u);
      expect(service.health.status).toBe('down');
      await client.connect();
      await eventually(() => expect(service.health.status).toBe('up'));
      await expect(service.withLock('key', () => 'in')).resolves.toBe('in');
    });

    it('loses its server without an error that nobody hears, and serves again when it is back', async () => {
      const client = make({ socket: { reconnectStrategy: 20 } });
      world.closing({ close: async () => client.isOpen && client.destroy() });
      const service = world.closing(new LockService(redis({ client })));
      const lock = await service.acquire('held', { ttlMs: 60_000 });
      await world.server.restart({ empty: true });
      await aborted(lock.signal);
      await eventually(async () => expect(await service.withLock('key', () => 'in')).toBe('in'));
    });

    it('A8: repeats nothing that got no answer: one grant, and nothing of it stays', async () => {
      const proxy = await world.proxy();
      const client = ending(make({ url: proxy.url, socket: { reconnectStrategy: 20 } }));
      const service = world.closing(new LockService(redis({ client })));
      await service.withLock('warm', () => undefined);
      const lost = proxy.dropReplyAfter('EVALSHA');
      const acquiring = service.acquire('key', { ttlMs: 20_000, waitMs: 5_000 });
      await lost;
      await (await acquiring).release();
      await eventually(async () => expect(await world.operator.keys('lock:{key}')).toEqual([]));
    });

    it('is refused in mode getset while it sends commands late', () => {
      const client = make({});
      expect(() => redis({ client, mode: 'getset' })).toThrow(/sends commands late.*disableOfflineQueue: true/u);
    });

    it('has one listener of each event, however many services share it', async () => {
      const client = ending(make({}));
      await client.connect();
      const before = EVENTS.map((event) => client.listenerCount(event));
      const services = Array.from({ length: 15 }, () => new LockService(redis({ client, mode: 'plain' })));
      for (const [i, service] of services.entries()) await service.withLock(`key-${i}`, () => undefined);
      expect(EVENTS.map((event) => client.listenerCount(event))).toEqual(before.map((count) => count + 1));
      await Promise.all(services.map((service) => service.close()));
      expect(EVENTS.map((event) => client.listenerCount(event))).toEqual(before);
    });

    it('votes in Redlock', async () => {
      const locks = world.closing(new LockService(redlock({ clients: [ending(make({}))] })));
      await expect(locks.withLock('key', () => 'in')).resolves.toBe('in');
      expect(JSON.stringify(locks.health)).toContain(String(world.server.port));
    });
  });

  it('of iovalkey is a client of ioredis under another name', async () => {
    const client = world.disconnecting(new Valkey(world.server.url));
    const service = world.closing(new LockService(redis({ client })));
    await using lock = await service.acquire('key');
    expect(lock.isHeld).toBe(true);
  });

  it.each<[string, () => unknown, RegExp]>([
    ['a pool', () => createClientPool(), /must not be a pool.*createClient\(\)/u],
    ['a legacy client', () => createClient().legacy(), /must be a client of ioredis or of redis, version 5 or 6/u],
    ['a client that holds commands back', () => createClient({ disableOfflineQueue: true }), /maintNotifications/u],
  ])('is refused when it is %s', (_what, make, message) => {
    const options = { client: make() as NodeRedisClient, mode: 'getset' } as const;
    expect(() => redis(options)).toThrow(message);
  });
});
