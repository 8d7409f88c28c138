import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { type LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { BasicClientSideCache, createClient } from 'redis';
import { atLeastMs, eventually, timeLimitOf, UNRENEWED_TTL_MS } from '../../support/index.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { describeRedis } from './redis-world.js';
import { countTrackedClients, untilLost, untilToldOfDeletion, untilTracked } from './tracked-locks.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(900);

/** `HELD_KEYS=2000000 MAX_TRACKED_KEYS=1000` needs 8 GB for this process. */
const HELD = Number(process.env.HELD_KEYS ?? 1_000);
const MAX_TRACKED = Number(process.env.MAX_TRACKED_KEYS ?? 50);

/** A young process sends its first check when it is 30 s old: `TRACKING_CHECK_MS`. Checks are due every 5 s. */
const LONGEST_TIME_TO_CHECK_MS = 35_000;

/** A process that holds millions pauses for seconds to collect garbage. */
const LONG = { ttlMs: UNRENEWED_TTL_MS, waitMs: 60_000 };

describeRedis('the tracking of held keys', (world) => {
  it('costs a short lock nothing: no third command, and no second connection', async () => {
    const locks = world.service();
    await locks.start();
    await locks.withLock('key', () => undefined);
    const commands = await world.commandsDuring(() => locks.withLock('key', () => undefined));
    expect(commands).toEqual(['evalsha', 'evalsha']);
    expect(await world.operator.pubsub('CHANNELS', '*')).toEqual([]);
  });

  it('leaves it to the next renewal when it is off, or the right to it is missing, which health says', async () => {
    await world.operator.acl('SETUSER', 'untracked', 'on', '>secret', '~*', '&*', '+@all', '-client|tracking');
    const url = world.server.url.replace('//', '//untracked:secret@');
    const [off, refused] = [world.service({ tracking: 'off' }), world.service({ url })];
    for (const locks of [off, refused]) {
      const lock = await locks.acquire('key', { ttlMs: 1_500 });
      await untilTracked();
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

  it('says in health that CLIENT CACHING alone is refused', async () => {
    await world.operator.acl('SETUSER', 'uncached', 'on', '>secret', '~*', '&*', '+@all', '-client|caching');
    const locks = world.service({ url: world.server.url.replace('//', '//uncached:secret@') });
    await locks.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
    await eventually(() => expect(locks.health.detail).toMatch(/client\|caching/u));
  });

  it('renews a lease at once whose time somebody has shortened', async () => {
    const lock = await world.service().acquire('key', { ttlMs: UNRENEWED_TTL_MS });
    await untilTracked();
    await world.operator.pexpire('lock:{key}', 5_000);
    await eventually(async () => expect(await world.operator.pttl('lock:{key}')).toBeGreaterThan(5_000));
    expect(lock.state).toBe('held');
  });

  it(
    'ends no lock when the server forgets keys for lack of space',
    async () => {
      await world.operator.config('SET', 'tracking-table-max-keys', String(MAX_TRACKED));
      try {
        const locks = world.service();
        const held: LockHandle[] = [];
        while (held.length < HELD) {
          const next = Array.from({ length: 1_000 }, (_, place) => `held-${held.length + place}`);
          held.push(...(await Promise.all(next.map((key) => locks.acquire(key, LONG)))));
        }
        await eventually(async () => expect(await countTrackedClients(world.operator)).toBe(1));
        await untilTracked();
        const since = performance.now();
        const commands = await world.commandsDuring(() => new Promise((resolve) => setTimeout(resolve, 1_000)));
        const seconds = (performance.now() - since) / 1_000;
        // Each renewal that is tracked anew lets the server forget another key: their number is limited.
        expect(commands.length).toBeLessThan(200 * seconds);
        expect(held.every((lock) => lock.state === 'held')).toBe(true);
        process.stderr.write(`${HELD} held, ${MAX_TRACKED} tracked: ${commands.length} commands in a second\n`);
      } finally {
        await world.operator.config('SET', 'tracking-table-max-keys', '1000000');
      }
    },
    timeLimitOf(HELD + 300_000),
  );

  it(
    'survives a connection that ends before it has answered a check',
    async () => {
      const proxy = await world.proxy();
      const client = world.disconnecting(new Redis(world.server.url));
      const duplicate = (options: object): Redis => new Redis(proxy.url, { ...options, retryStrategy: () => 20 });
      const locks = world.closing(new LockService(redis({ client: Object.assign(client, { duplicate }) })));
      const lock = await locks.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
      await eventually(async () => expect(await countTrackedClients(world.operator)).toBe(1));
      // Jest fails a test in which a promise is rejected that nobody handles. Such a promise ends a process.
      await proxy.dropReplyAfter(/subscribe/iu);
      await eventually(() => expect(proxy.connections).toBe(1));
      await untilTracked();
      const told = untilLost(lock);
      await world.operator.del('lock:{key}');
      await told;
    },
    timeLimitOf(LONGEST_TIME_TO_CHECK_MS + 300_000),
  );

  it('ends on a given client with the last service that uses it', async () => {
    const client = world.disconnecting(new Redis(world.server.url));
    const [first, second] = [new LockService(redis({ client })), new LockService(redis({ client }))].map((locks) =>
      world.closing(locks),
    );
    if (!first || !second) throw new Error('there are two services');
    for (const locks of [first, second]) await locks.acquire(randomUUID(), { ttlMs: UNRENEWED_TTL_MS });
    await eventually(async () => expect(await countTrackedClients(world.operator)).toBe(1));
    await first.close();
    await untilToldOfDeletion(second, world.operator);
    await second.close();
    await eventually(async () => expect(await countTrackedClients(world.operator)).toBe(0));
    expect(client.status).toBe('ready');
  });

  it('leaves the cache of a given client its messages, and says so', async () => {
    const clientSideCache = new BasicClientSideCache({ ttl: 0, maxEntries: 0 });
    const client = createClient({ url: world.server.url, RESP: 3, clientSideCache });
    client.on('error', () => undefined);
    await client.connect();
    try {
      const locks = world.closing(new LockService(redis({ client })));
      await locks.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
      await eventually(() => expect(locks.health.detail).toMatch(/the application tracks keys/u));
      await world.operator.set('cached', 'old');
      expect(await client.get('cached')).toBe('old');
      await world.operator.set('cached', 'new');
      await eventually(async () => expect(await client.get('cached')).toBe('new'));
    } finally {
      client.destroy();
    }
  });

  it('ends no lock on a key that has moved while its slot migrates', async () => {
    const cluster = await RedisCluster.start({ replicas: 0, nodeTimeoutMs: 15_000 });
    try {
      await using locks = new LockService(redis({ cluster: cluster.addresses }));
      const source = await cluster.masterOf('lock:{a}');
      const target = cluster.servers.find((server) => server !== source);
      if (!target) throw new Error('a cluster has several nodes');
      const [from, to] = [source, target].map(({ port }) => world.disconnecting(new Redis(port, '127.0.0.1')));
      if (!from || !to) throw new Error('both nodes have a client');
      // The process also listens to the target.
      for (const key of 'bcdefghijk') await locks.acquire(key, { ttlMs: UNRENEWED_TTL_MS });
      const lock = await locks.acquire('a', { ttlMs: TTL_MS });
      await untilTracked();
      const slot = Number(await from.call('CLUSTER', 'KEYSLOT', 'lock:{a}'));
      await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(await from.call('CLUSTER', 'MYID')));
      await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(await to.call('CLUSTER', 'MYID')));
      await from.call('MIGRATE', '127.0.0.1', target.port, 'lock:{a}', 0, 5_000);
      await new Promise((resolve) => setTimeout(resolve, TTL_MS * 1.5));
      expect(lock.state).toBe('held');
    } finally {
      await cluster.stop();
    }
  });
});
