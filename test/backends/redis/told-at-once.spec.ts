import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { type LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { RedisSentinels } from '../../servers/redis-sentinels.js';
import { eventually } from '../../support/eventually.js';
import { giveClient } from '../../support/given-redis-client.js';
import { BasicClientSideCache, createClient } from 'redis';
import { percentiles } from '../../../bench/measures.js';
import { RedisWorld } from './redis-world.js';

/** `TOLD_TRIALS=1000` runs as many of each kind, and prints the times. */
const TRIALS = Number(process.env.TOLD_TRIALS ?? 20);
/** A third of it, after which a lease is renewed, is longer than any test here may take: no renewal explains what is told. */
const TTL_MS = 600_000;
/** Time after which the server tracks a key. */
const TRACKED_MS = 60;

/** Ways in which somebody else ends a lease. */
const ENDS = {
  DEL: (world: RedisWorld, key: string) => world.operator.del(`lock:{${key}}`),
  'another value': (world: RedisWorld, key: string) => world.operator.set(`lock:{${key}}`, 'another program'),
  evict: (world: RedisWorld, key: string) => world.service().evict(key),
  'a value of another kind': async (world: RedisWorld, key: string) => {
    await world.operator.multi().del(`lock:{${key}}`).lpush(`lock:{${key}}`, 'another program').exec();
  },
  FLUSHALL: (world: RedisWorld) => world.operator.flushall(),
  'eviction by allkeys-lru': async (world: RedisWorld, key: string) => {
    await world.operator.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await world.operator.config('SET', 'maxmemory', '1');
    await eventually(async () => expect(await world.operator.exists(`lock:{${key}}`)).toBe(0), { everyMs: 1 });
    await world.operator.config('SET', 'maxmemory', '0');
    await world.operator.config('SET', 'maxmemory-policy', 'noeviction');
  },
} as const;

/** Ends after which the server still knows who waits, and keeps the key closed until the holder knows. */
const ENDS_WITH_QUEUE = ['DEL', 'evict'] as const;

describe('a holder whose lease somebody else ends', () => {
  let world: RedisWorld;
  beforeAll(async () => {
    world = await RedisWorld.start();
  });
  afterEach(() => world.endTest());
  afterAll(() => world.stop());

  describe.each(['queue', 'plain'] as const)('in mode %s', (mode) => {
    it.each(Object.keys(ENDS) as (keyof typeof ENDS)[])(
      'is told at once: %s',
      async (kind) => {
        const locks = world.service({ mode });
        const times: number[] = [];
        for (let trial = 0; trial < TRIALS; trial += 1) {
          const key = `told-${trial}`;
          const lock = await locks.acquire(key, { ttlMs: TTL_MS });
          // Some leases end before their keys are tracked.
          if (trial % 4 > 0) await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
          const since = performance.now();
          const told = untilLost(lock);
          await ENDS[kind](world, key);
          times.push((await told) - since);
          expect(lock.state).toBe('lost');
          await world.operator.del(`lock:{${key}}`);
        }
        print(`${mode}, ${kind}`, times);
      },
      TRIALS * 2_000 + 20_000,
    );
  });

  it.each(ENDS_WITH_QUEUE)(
    'is told before a waiter gets in: %s',
    async (kind) => {
      const [holders, waiters] = [world.service(), world.service()];
      const times: number[] = [];
      for (let trial = 0; trial < TRIALS; trial += 1) {
        const key = `before-${trial}`;
        const lock = await holders.acquire(key, { ttlMs: TTL_MS });
        const lost = untilLost(lock);
        const waiting = waiters.acquire(key, { waitMs: 30_000 });
        await world.untilWaiting(key, 1);
        await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
        const since = performance.now();
        await ENDS[kind](world, key);
        const next = await waiting;
        const gotInAt = performance.now();
        expect(lock.state).toBe('lost');
        expect(await lost).toBeLessThanOrEqual(gotInAt);
        expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
        times.push(gotInAt - since);
        await next.release();
      }
      print(`a waiter after ${kind}`, times);
    },
    TRIALS * 6_000 + 20_000,
  );

  it.each([
    ['ioredis 5', (url: string) => redis({ client: world.disconnecting(new Redis5(url)) })()],
    ['ioredis', (url: string) => redis({ client: world.disconnecting(new Redis(url)) })()],
    ['iovalkey', (url: string) => giveClient('iovalkey', { url, mode: 'queue' })],
    ['node-redis', (url: string) => giveClient('redis', { url, mode: 'queue' })],
    ['node-redis 5', (url: string) => giveClient('redis-5', { url, mode: 'queue' })],
    ['node-redis of ours', (url: string) => redis({ url, clientPackage: 'redis' })()],
  ])('is told by a client of %s', async (_name, backendOf) => {
    await isTold(world.closing(new LockService(backendOf(world.server.url))), world.operator);
  });

  it('is told under Sentinel, and after a failover', async () => {
    const set = await RedisSentinels.start();
    try {
      const { addresses: sentinels, name } = set;
      await using locks = new LockService(redis({ sentinels, name }));
      await isTold(locks, world.disconnecting(new Redis((await set.master()).url)));
    } finally {
      await set.stop();
    }
  });

  it('is told on each node of a cluster', async () => {
    const cluster = await RedisCluster.start({ replicas: 0 });
    try {
      await using locks = new LockService(redis({ cluster: cluster.addresses }));
      const operators = cluster.servers.map(({ port }) => world.disconnecting(new Redis(port, '127.0.0.1')));
      for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
        const lock = await locks.acquire(key, { ttlMs: TTL_MS });
        await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
        const told = untilLost(lock);
        await Promise.any(operators.map((operator) => operator.del(`lock:{${key}}`)));
        await told;
      }
    } finally {
      await cluster.stop();
    }
  });

  it.each(['pubsub', 'normal'] as const)('is told after its connections of type %s were ended', async (type) => {
    const locks = world.service();
    const lock = await locks.acquire('key', { ttlMs: TTL_MS });
    await eventually(async () => expect(await trackedClients()).toBe(1));
    await world.operator.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    await eventually(async () => expect(await trackedClients()).toBe(1));
    await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
    const told = untilLost(lock);
    await world.operator.del('lock:{key}');
    await told;
  });

  it('is told by its next renewal with tracking off, or without the right to it, which health says', async () => {
    await world.operator.acl('SETUSER', 'untracked', 'on', '>secret', '~*', '&*', '+@all', '-client|tracking');
    const url = world.server.url.replace('//', '//untracked:secret@');
    const [off, refused] = [world.service({ tracking: 'off' }), world.service({ url })];
    for (const locks of [off, refused]) {
      const lock = await locks.acquire('key', { ttlMs: 1_500 });
      await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
      const told = untilLost(lock);
      await world.operator.del('lock:{key}');
      await told;
    }
    expect(off.health).toEqual({ status: 'up' });
    expect(refused.health).toMatchObject({
      status: 'up',
      detail: expect.stringMatching(/next renewal.*TRACKING.*NOPERM/u),
    });
  });

  it.each(['queue', 'plain'] as const)('is told of an eviction by its own service, in mode %s', async (mode) => {
    const locks = world.service({ mode });
    const lock = await locks.acquire('key', { ttlMs: TTL_MS });
    await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
    const told = untilLost(lock);
    await locks.evict('key');
    await told;
  });

  it('is told by whichever service on its client listens, and after that one has closed', async () => {
    const client = world.disconnecting(new Redis(world.server.url));
    const [first, second] = [new LockService(redis({ client })), new LockService(redis({ client }))];
    world.closing(first);
    const [a, b] = [await first.acquire('a', { ttlMs: TTL_MS }), await first.acquire('b', { ttlMs: TTL_MS })];
    await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
    await second.acquire('c', { ttlMs: TTL_MS });
    await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
    const toldOfA = untilLost(a);
    await world.operator.del('lock:{a}');
    await toldOfA;
    await second.close();
    await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
    const toldOfB = untilLost(b);
    await world.operator.del('lock:{b}');
    await toldOfB;
  });

  it('leaves the cache of a given client its messages, and says so', async () => {
    const clientSideCache = new BasicClientSideCache({ ttl: 0, maxEntries: 0 });
    const client = createClient({ url: world.server.url, RESP: 3, clientSideCache });
    client.on('error', () => undefined);
    await client.connect();
    try {
      const locks = world.closing(new LockService(redis({ client })));
      await locks.acquire('key', { ttlMs: TTL_MS });
      await eventually(() => expect(locks.health.detail).toMatch(/the application tracks keys/u));
      await world.operator.set('cached', 'old');
      expect(await client.get('cached')).toBe('old');
      await world.operator.set('cached', 'new');
      await eventually(async () => expect(await client.get('cached')).toBe('new'));
    } finally {
      client.destroy();
    }
  });

  it('keeps its lock on a key that has moved while its slot migrates', async () => {
    const cluster = await RedisCluster.start({ replicas: 0 });
    try {
      await using locks = new LockService(redis({ cluster: cluster.addresses }));
      const source = await cluster.masterOf('lock:{a}');
      const target = cluster.servers.find((server) => server !== source);
      if (!target) throw new Error('a cluster has several nodes');
      const [from, to] = [source, target].map(({ port }) => world.disconnecting(new Redis(port, '127.0.0.1')));
      if (!from || !to) throw new Error('both nodes have a client');
      // The process also listens to the target.
      for (const key of 'bcdefghijk') await locks.acquire(key, { ttlMs: TTL_MS });
      const lock = await locks.acquire('a', { ttlMs: 900 });
      await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
      const slot = Number(await from.call('CLUSTER', 'KEYSLOT', 'lock:{a}'));
      await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(await from.call('CLUSTER', 'MYID')));
      await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(await to.call('CLUSTER', 'MYID')));
      await from.call('MIGRATE', '127.0.0.1', target.port, 'lock:{a}', 0, 5_000);
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(lock.state).toBe('held');
    } finally {
      await cluster.stop();
    }
  });

  it('says in health that CLIENT CACHING alone is refused', async () => {
    await world.operator.acl('SETUSER', 'uncached', 'on', '>secret', '~*', '&*', '+@all', '-client|caching');
    const locks = world.service({ url: world.server.url.replace('//', '//uncached:secret@') });
    await locks.acquire('key', { ttlMs: TTL_MS });
    await eventually(() => expect(locks.health.detail).toMatch(/client\|caching/u));
  });

  it('renews a lease at once whose time somebody has shortened', async () => {
    const lock = await world.service().acquire('key', { ttlMs: TTL_MS });
    await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
    await world.operator.pexpire('lock:{key}', 5_000);
    await eventually(async () => expect(await world.operator.pttl('lock:{key}')).toBeGreaterThan(5_000));
    expect(lock.state).toBe('held');
  });

  it('costs a short lock nothing: no third command, and no second connection', async () => {
    const locks = world.service();
    await locks.start();
    await locks.withLock('key', () => undefined);
    const commands = await world.commandsDuring(() => locks.withLock('key', () => undefined));
    expect(commands).toEqual(['evalsha', 'evalsha']);
    expect(await world.operator.pubsub('CHANNELS', '*')).toEqual([]);
  });

  it('is not told wrongly when the server forgets keys for lack of space', async () => {
    await world.operator.config('SET', 'tracking-table-max-keys', '50');
    try {
      const locks = world.service();
      const held = await Promise.all(
        Array.from({ length: 1_000 }, (_, place) => locks.acquire(`held-${place}`, { ttlMs: TTL_MS })),
      );
      await eventually(async () => expect(await trackedClients()).toBe(1));
      await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
      const commands = await world.commandsDuring(() => new Promise((resolve) => setTimeout(resolve, 1_000)));
      // Each renewal that is tracked anew lets the server forget another key: their number is limited.
      expect(commands.length).toBeLessThan(200);
      expect(held.every((lock) => lock.state === 'held')).toBe(true);
    } finally {
      await world.operator.config('SET', 'tracking-table-max-keys', '1000000');
    }
  });

  /** Number of connections whose keys the server tracks. */
  async function trackedClients(): Promise<number> {
    const [, count] = /^tracking_clients:(\d+)/mu.exec(await world.operator.info('clients')) ?? [];
    return Number(count);
  }
});

async function isTold(locks: LockService, operator: Redis): Promise<void> {
  const lock = await locks.acquire('key', { ttlMs: TTL_MS });
  await new Promise((resolve) => setTimeout(resolve, TRACKED_MS));
  const told = untilLost(lock);
  await operator.del('lock:{key}');
  await told;
}

/** Resolves to the time at which the holder is told that its lock is lost. */
function untilLost({ signal }: LockHandle): Promise<number> {
  return new Promise((resolve) => {
    const onAbort = (): void => resolve(performance.now());
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
  });
}

function print(what: string, times: readonly number[]): void {
  const [median = NaN, p99 = NaN, longest = NaN] = percentiles(times, [50, 99, 100]);
  const shown = [median, p99, longest].map((ms) => ms.toFixed(1)).join(', ');
  process.stdout.write(`${what}: told after ${shown} ms (median, p99, longest of ${times.length})\n`);
}
