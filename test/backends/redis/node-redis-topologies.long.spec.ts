import { LockService } from 'nestjs-distributed-lock/core';
import { type NodeRedisCluster, type NodeRedisSentinel, redis, type RedisMode } from 'nestjs-distributed-lock/redis';
import { createCluster, createSentinel } from 'redis';
import { createCluster as createCluster5, createSentinel as createSentinel5 } from 'redis-5';
import { askRedis, atLeastMs, eventually, FaultProxy, SLACK_MS } from '../../support/index.js';
import { RedisCluster } from '../../servers/redis-cluster.js';
import { RedisSentinels } from '../../servers/redis-sentinels.js';

const MODES: readonly RedisMode[] = ['queue', 'plain', 'getset'];
const PATIENCE = { withinMs: 15_000 };

interface Ending {
  destroy(): unknown;
  on(event: 'error', listener: () => void): unknown;
}

const opened: (() => unknown)[] = [];

/** Ends with the test. */
function ending<Client extends Ending>(client: Client): Client {
  opened.push(() => client.destroy());
  client.on('error', () => undefined);
  return client;
}

function locksBy(client: NodeRedisCluster | NodeRedisSentinel, mode: RedisMode = 'queue'): LockService {
  const service = new LockService(redis({ client, mode }));
  opened.push(() => service.close(1_000));
  return service;
}

async function endTest(): Promise<void> {
  for (const close of opened.splice(0).toReversed()) await close();
}

/** Acquires, renews, waits and hands over. */
async function expectLocks(client: NodeRedisCluster | NodeRedisSentinel, mode: RedisMode): Promise<void> {
  const [a, b] = [locksBy(client, mode), locksBy(client, mode)];
  const first = await a.acquire('key', { ttlMs: atLeastMs(2_000) });
  await expect(b.tryAcquire('key')).resolves.toBeNull();
  const waiting = b.acquire('key', { waitMs: 10_000 });
  await (await b.acquire('other')).release();
  const since = performance.now();
  await first.release();
  const second = await waiting;
  expect(performance.now() - since).toTakeLessThan(2 * SLACK_MS);
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  await second.release();
  await Promise.all([a.close(), b.close()]);
}

describe('a cluster of node-redis that was given', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start({ replicas: 0, nodeTimeoutMs: 15_000 });
    for (const { port } of cluster.servers)
      await askRedis(port, 'ACL SETUSER app reset on >c4n4ry ~lock:* &lock:* +@all');
  });
  afterEach(endTest);
  afterAll(() => cluster.stop());

  const rootNodes = () => cluster.addresses.map((socket) => ({ socket }));
  const defaults = { username: 'app', password: 'c4n4ry' };
  const makers: readonly [string, () => NodeRedisCluster & Ending][] = [
    ['6', () => createCluster({ rootNodes: rootNodes(), defaults })],
    ['6, few connections', () => createCluster({ rootNodes: rootNodes(), defaults, minimizeConnections: true })],
    ['5', () => createCluster5({ rootNodes: rootNodes(), defaults })],
    ['5, RESP3', () => createCluster5({ rootNodes: rootNodes(), defaults, RESP: 3 })],
  ];

  describe.each(makers)('version %s', (_version, make) => {
    it.each(MODES)('is the model for connections of our own, and stays as it was (%s)', async (mode) => {
      const client = ending(make());
      await client.connect();
      await expectLocks(client, mode);
      expect(client.isOpen).toBe(true);
    });

    it('is connected by the first request, and its user is that of the locks', async () => {
      const locks = locksBy(ending(make()));
      await using lock = await locks.acquire('key');
      expect(lock.isHeld).toBe(true);
      const lists = await Promise.all(cluster.servers.map(({ port }) => askRedis(port, 'CLIENT LIST')));
      expect(lists.join()).toMatch(/name=nestjs-distributed-lock\S* .*user=app/u);
    });
  });

  it.each(['6', '5'])('is followed through its nodeAddressMap (version %s)', async (version) => {
    const proxies = await Promise.all(cluster.servers.map(({ port }) => FaultProxy.start({ port })));
    opened.push(() => Promise.all(proxies.map((proxy) => proxy.close())));
    const entries = cluster.servers.map(({ port }, i) => {
      const address = { host: '127.0.0.1', port: proxies[i]?.port ?? 0 };
      return [`127.0.0.1:${port}`, address] as const;
    });
    const nodeAddressMap = Object.fromEntries(entries);
    const options = { rootNodes: rootNodes(), defaults, nodeAddressMap, minimizeConnections: true };
    const locks = locksBy(ending(version === '6' ? createCluster(options) : createCluster5(options)), 'plain');
    const before = proxies.map((proxy) => proxy.connections);
    for (let i = 0; i < 20; i += 1) await locks.withLock(`key-${i}`, () => undefined);
    for (const [i, proxy] of proxies.entries()) expect(proxy.connections).toBeGreaterThan(before[i] ?? 0);
  });
});

describe.each(['6', '5'])('a Sentinel client of node-redis that was given (version %s)', (version) => {
  let set: RedisSentinels;
  beforeAll(async () => {
    set = await RedisSentinels.start();
  });
  afterEach(endTest);
  afterAll(() => set.stop());

  const make = (): NodeRedisSentinel & Ending => {
    const options = { name: set.name, sentinelRootNodes: set.addresses };
    return ending(version === '6' ? createSentinel(options) : createSentinel5(options));
  };

  it.each(MODES)('is the model for connections of our own, and stays as it was (%s)', async (mode) => {
    const client = make();
    await client.connect();
    await expectLocks(client, mode);
    expect(client.isOpen).toBe(true);
  });

  it('is connected by the first request, and leads to the next master', async () => {
    const locks = locksBy(make());
    const lock = await locks.acquire('held', { ttlMs: 60_000 });
    const former = await set.master();
    await former.kill();
    await expect(locks.withLock('key', () => 'in', { waitMs: 25_000 })).resolves.toBe('in');
    expect(await set.master()).not.toBe(former);
    await eventually(() => expect(locks.health.status).toBe('up'), PATIENCE);
    await lock.release().catch(() => undefined);
  });
});
