import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { createUrlSource } from '../../../lib/backends/redis/connection/client-sources.js';
import { RedisConnection } from '../../../lib/backends/redis/connection/redis-connection.js';
import { SET_IF_FREE } from '../../../lib/backends/redis/scripts/lease-scripts.js';
import { askRedis, closeAfterEach, eventually, FaultProxy, RedisServer, throughout } from '../../support/index.js';
import { warningsDuring } from '../../support/node-warnings.js';

const TTL_MS = 8_000;

/** A name that leads to the master, as those of managed servers do: a proxy whose target moves. */
describe('a master that has become a replica', () => {
  let first: RedisServer;
  let second: RedisServer;
  let name: FaultProxy;
  const keep = closeAfterEach();

  beforeAll(async () => {
    first = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
    second = await RedisServer.start({
      args: ['--replicaof', '127.0.0.1', String(first.port), '--repl-diskless-sync-delay', '0'],
    });
    await eventually(async () => expect(await askRedis(first.port, 'INFO replication')).toContain('state=online'));
    name = await FaultProxy.start({ port: first.port });
  });
  afterAll(async () => {
    await name.close();
    await Promise.all([first.stop(), second.stop()]);
  });

  /** New connections go to the new master afterwards; those that are open stay with the old one. */
  const failOver = async (): Promise<void> => {
    const [from, to] = (await askRedis(first.port, 'INFO replication')).includes('role:master')
      ? [first, second]
      : [second, first];
    const infoOf = ({ port }: RedisServer): Promise<string> => askRedis(port, 'INFO replication');
    await eventually(async () => expect(await infoOf(from)).toContain('state=online'));
    await askRedis(from.port, 'FAILOVER');
    await eventually(async () => expect(await infoOf(to)).toContain('role:master'), { withinMs: 20_000 });
    name.redirect(to);
  };

  const servicesOf: [string, () => RedisOptions][] = [
    ['by url', () => ({ url: `redis://127.0.0.1:${name.port}` })],
    [
      'by a client that follows the manual of ioredis',
      () => {
        const reconnectOnError = ({ message }: Error): boolean => message.includes('READONLY');
        const client = new Redis(name.port, '127.0.0.1', { reconnectOnError });
        client.on('error', () => undefined);
        keep({ close: async () => client.disconnect() });
        return { client };
      },
    ],
  ];

  it.each(servicesOf)('is left, and none of ten locks is lost (%s)', async (how, options) => {
    const lost: string[] = [];
    const observers = [{ lost: ({ key }: { key: string }) => void lost.push(key) }];
    const locks = keep(new LockService(redis(options()), { observers }));
    const held = await Promise.all(
      Array.from({ length: 10 }, (_, i) => locks.acquire(`${how}-${i}`, { ttlMs: TTL_MS })),
    );
    await failOver();
    // Renewals alone have to move the connection: they share a command each time, and nothing else is asked.
    await throughout(TTL_MS * 1.2, () => expect(lost).toEqual([]));
    await eventually(() => expect(held.map(({ state }) => state)).toEqual(held.map(() => 'held')));
    const asked = await Promise.all(['a', 'b'].map((key) => locks.acquire(`${how}-${key}`, { waitMs: 10_000 })));
    await Promise.all([...held, ...asked].map((lock) => lock.release()));
  });

  it('is left because of two calls that share each command', async () => {
    const connection = keep(new RedisConnection(createUrlSource(`redis://127.0.0.1:${name.port}`), 1_000));
    const set = (key: string): Promise<unknown> => {
      const commands = [{ script: SET_IF_FREE, keys: [key], args: ['owner|', 1_000] }];
      return connection.send(key, { commands, read: ([reply]) => reply });
    };
    await Promise.all([set('a'), set('b')]);
    await failOver();
    await expect(Promise.all([set('c'), set('d')])).rejects.toThrow('READONLY');
    await eventually(() => Promise.all([set('e'), set('f')]));
  });

  it.each([
    ['MASTERDOWN', 'CONFIG SET replica-serve-stale-data no', 'REPLICAOF 127.0.0.1 1'],
    ['NOREPLICAS', 'CONFIG SET min-replicas-to-write 1'],
  ])('is left as well when it answers %s', async (code, ...commands) => {
    const [former, present] = [await RedisServer.start(), await RedisServer.start()];
    const movingName = await FaultProxy.start({ port: former.port });
    const locks = new LockService(redis({ url: `redis://127.0.0.1:${movingName.port}` }));
    try {
      await locks.withLock('warm-up', () => undefined);
      for (const command of commands) await askRedis(former.port, command);
      expect(await askRedis(former.port, `EVAL "return redis.call('SET', KEYS[1], '')" 1 k`)).toContain(code);
      movingName.redirect(present);
      await expect(locks.withLock('key', () => 'in', { waitMs: 10_000 })).resolves.toBe('in');
    } finally {
      await locks.close();
      await movingName.close();
      await Promise.all([former.stop(), present.stop()]);
    }
  });

  it('is told once while it lasts, and without a warning, however many locks are held', async () => {
    const server = await RedisServer.start();
    const told: string[] = [];
    const healthChanged = ({ status }: { status: string }): void => void told.push(status);
    const locks = new LockService(redis({ url: server.url }), { observers: [{ healthChanged }] });
    try {
      const warnings = await warningsDuring(async () => {
        const keys = Array.from({ length: 40 }, (_, i) => `key-${i}`);
        const held = await Promise.all(keys.map((key) => locks.acquire(key, { ttlMs: TTL_MS })));
        await askRedis(server.port, 'REPLICAOF 127.0.0.1 1');
        await new Promise((resolve) => setTimeout(resolve, TTL_MS / 2));
        // Told once: what was told too often stays.
        await eventually(() => expect(told).toEqual(['up', 'down']));
        await askRedis(server.port, 'REPLICAOF NO ONE');
        await eventually(() => expect(held.map(({ state }) => state)).toEqual(held.map(() => 'held')));
        await eventually(() => expect(told).toEqual(['up', 'down', 'up']));
      });
      expect(warnings).toEqual([]);
    } finally {
      await locks.close();
      await server.stop();
    }
  });
});
