import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { askRedis, eventually, UNRENEWED_TTL_MS } from '../../support/index.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { RedisSentinels } from '../../servers/redis-sentinels.js';
import { giveClient } from '../../support/given-redis-client.js';
import { percentiles } from '../../../bench/measures.js';
import { describeRedis, RedisWorld } from './redis-world.js';
import { countTrackedClients, untilLost, untilToldOfDeletion, untilTracked } from './tracked-locks.js';

/** `TOLD_TRIALS=1000` runs as many of each kind, and prints the times. */
const TRIALS = Number(process.env.TOLD_TRIALS ?? 20);
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

describeRedis('a holder whose lease somebody else ends', (world) => {
  describe.each(['queue', 'plain'] as const)('in mode %s', (mode) => {
    it.each(Object.keys(ENDS) as (keyof typeof ENDS)[])(
      'is told at once: %s',
      async (kind) => {
        const locks = world.service({ mode });
        const times: number[] = [];
        for (let trial = 0; trial < TRIALS; trial += 1) {
          const key = `told-${trial}`;
          const lock = await locks.acquire(key, { ttlMs: UNRENEWED_TTL_MS });
          // Some leases end before their keys are tracked.
          if (trial % 4 > 0) await untilTracked();
          const since = performance.now();
          const told = untilLost(lock);
          await ENDS[kind](world, key);
          times.push((await told) - since);
          expect(lock.state).toBe('lost');
          await world.operator.del(`lock:{${key}}`);
        }
        print(`${mode}, ${kind}`, times);
      },
      TRIALS * 2_000 + 300_000,
    );
  });

  it.each(ENDS_WITH_QUEUE.flatMap((kind) => [0, 10].map((delayMs) => ({ kind, delayMs }))))(
    'is told before a waiter gets in, to whom the way is $delayMs ms shorter: $kind',
    async ({ kind, delayMs }) => {
      const proxy = await world.proxy();
      const [holders, waiters, newcomers] = [world.service({ url: proxy.url }), world.service(), world.service()];
      proxy.delay(delayMs, 'down');
      await untilToldOfDeletion(holders, world.operator);
      const times: number[] = [];
      for (let trial = 0; trial < TRIALS; trial += 1) {
        const key = `before-${trial}`;
        const lock = await holders.acquire(key, { ttlMs: UNRENEWED_TTL_MS });
        const lost = untilLost(lock);
        const waiting = waiters.acquire(key, { waitMs: 30_000 });
        await world.untilWaiting(key, 1);
        await untilTracked();
        const since = performance.now();
        await ENDS[kind](world, key);
        // A call that finds the key free hands it to the waiter, unless the key is closed.
        if (delayMs > 0) await expect(newcomers.tryAcquire(key)).resolves.toBeNull();
        const next = await waiting;
        const gotInAt = performance.now();
        expect(lock.state).toBe('lost');
        expect(await lost).toBeLessThanOrEqual(gotInAt);
        expect(next.fencingToken).toBeGreaterThan(lock.fencingToken);
        times.push(gotInAt - since);
        await next.release();
      }
      print(`a waiter after ${kind}, ${delayMs} ms`, times);
    },
    TRIALS * 6_000 + 300_000,
  );

  it.each([
    ['ioredis 5', (url: string) => redis({ client: world.disconnecting(new Redis5(url)) })()],
    ['ioredis', (url: string) => redis({ client: world.disconnecting(new Redis(url)) })()],
    ['iovalkey', (url: string) => giveClient('iovalkey', { url, mode: 'queue' })],
    ['node-redis', (url: string) => giveClient('redis', { url, mode: 'queue' })],
    ['node-redis 5', (url: string) => giveClient('redis-5', { url, mode: 'queue' })],
    ['node-redis of ours', (url: string) => redis({ url, clientPackage: 'redis' })()],
  ])('is told by a client of %s', async (_name, backendOf) => {
    await untilToldOfDeletion(world.closing(new LockService(backendOf(world.server.url))), world.operator);
  });

  it('is told under Sentinel, and after a failover', async () => {
    const set = await RedisSentinels.start({ downAfterMs: 10_000 });
    try {
      const { addresses: sentinels, name } = set;
      await using locks = new LockService(redis({ sentinels, name }));
      const former = await set.master();
      await untilToldOfDeletion(locks, world.disconnecting(new Redis(former.url)));
      await askRedis(sentinels[0]?.port ?? NaN, `SENTINEL failover ${name}`);
      await eventually(async () => expect(await set.master()).not.toBe(former), { withinMs: 10_000 });
      const present = world.disconnecting(new Redis((await set.master()).url));
      await eventually(async () => expect(await locks.withLock('other', () => 'in')).toBe('in'), { withinMs: 10_000 });
      await untilToldOfDeletion(locks, present);
    } finally {
      await set.stop();
    }
  });

  it('is told on each node of a cluster', async () => {
    const cluster = await RedisCluster.start({ replicas: 0, nodeTimeoutMs: 15_000 });
    try {
      await using locks = new LockService(redis({ cluster: cluster.addresses }));
      const operators = cluster.servers.map(({ port }) => world.disconnecting(new Redis(port, '127.0.0.1')));
      for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
        const lock = await locks.acquire(key, { ttlMs: UNRENEWED_TTL_MS });
        await untilTracked();
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
    const lock = await locks.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
    await eventually(async () => expect(await countTrackedClients(world.operator)).toBe(1));
    await world.operator.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    await eventually(async () => expect(await countTrackedClients(world.operator)).toBe(1));
    await untilTracked();
    const told = untilLost(lock);
    await world.operator.del('lock:{key}');
    await told;
  });

  it.each(['queue', 'plain'] as const)('is told of an eviction by its own service, in mode %s', async (mode) => {
    const locks = world.service({ mode });
    const lock = await locks.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
    await untilTracked();
    const told = untilLost(lock);
    await locks.evict('key');
    await told;
  });

  it('is told by whichever service on its client listens, and after that one has closed', async () => {
    const client = world.disconnecting(new Redis(world.server.url));
    const [first, second] = [new LockService(redis({ client })), new LockService(redis({ client }))];
    world.closing(first);
    const [a, b] = [
      await first.acquire('a', { ttlMs: UNRENEWED_TTL_MS }),
      await first.acquire('b', { ttlMs: UNRENEWED_TTL_MS }),
    ];
    await untilTracked();
    await second.acquire('c', { ttlMs: UNRENEWED_TTL_MS });
    await untilTracked();
    const toldOfA = untilLost(a);
    await world.operator.del('lock:{a}');
    await toldOfA;
    await second.close();
    await untilTracked();
    const toldOfB = untilLost(b);
    await world.operator.del('lock:{b}');
    await toldOfB;
  });
});

function print(what: string, times: readonly number[]): void {
  const [median = NaN, p99 = NaN, longest = NaN] = percentiles(times, [50, 99, 100]);
  const shown = [median, p99, longest].map((ms) => ms.toFixed(1)).join(', ');
  process.stdout.write(`${what}: told after ${shown} ms (median, p99, longest of ${times.length})\n`);
}
