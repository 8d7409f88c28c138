import { Redis } from 'ioredis';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisCluster as GivenCluster } from 'nestjs-distributed-lock/redis';
import { askRedis, eventually, FaultProxy } from '../../support/index.js';
import { RedisCluster } from '../../servers/redis-cluster.js';

const PATIENCE = { withinMs: 15_000 };

/**
 * A stand-in for the `Cluster` of ioredis where only the locks use it: it looks for its nodes anew when a command finds
 * none of them, and not before. The servers and the connections to them are real.
 */
class QuietCluster implements GivenCluster {
  readonly isCluster = true;
  readonly options = {};
  status = 'ready';
  asked = 0;
  #nodes: Redis[] = [];
  #proxies: FaultProxy[] = [];

  constructor(private readonly cluster: RedisCluster) {}

  async connect(): Promise<void> {}

  nodes(): Redis[] {
    return this.#nodes;
  }

  async call(): Promise<unknown> {
    this.asked += 1;
    this.#learn();
    return 'PONG';
  }

  /** The nodes have new addresses from now on, and nobody answers at the old ones. */
  async move(): Promise<void> {
    const { servers } = this.cluster;
    const before = this.#proxies;
    this.#proxies = await Promise.all(servers.map(({ port }) => FaultProxy.start({ port })));
    const ports = this.#proxies.map((proxy) => proxy.port);
    for (const [place, { port }] of servers.entries()) {
      await askRedis(port, `CONFIG SET cluster-announce-port ${ports[place]}`);
    }
    await eventually(async () => {
      const tables = await Promise.all(servers.map(({ port }) => askRedis(port, 'CLUSTER NODES')));
      return tables.every((table) => ports.every((port) => table.includes(`127.0.0.1:${port}@`)));
    }, PATIENCE);
    await Promise.all(before.map((proxy) => proxy.close()));
    if (this.#nodes.length === 0) this.#learn();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }

  #learn(): void {
    const host = '127.0.0.1';
    this.#nodes = this.#proxies.map(({ port }) => new Redis({ host, port, lazyConnect: true }));
  }
}

describe('a Cluster that only the locks use', () => {
  let cluster: RedisCluster;
  let given: QuietCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start({ replicas: 0 });
  });
  afterEach(() => given.stop());
  afterAll(() => cluster.stop());

  it('is asked to look again when all of its nodes have new addresses', async () => {
    given = new QuietCluster(cluster);
    await given.move();
    await using locks = new LockService(redis({ client: given }));
    const lock = await locks.acquire('held', { ttlMs: 20_000 });
    await given.move();
    await expect(locks.withLock('key', () => 'in', { waitMs: 15_000 })).resolves.toBe('in');
    await eventually(() => expect([lock.state, locks.health.status]).toEqual(['held', 'up']), PATIENCE);
    expect(given.asked).toBeGreaterThan(0);
    await lock.release();
  });

  it('names each connection differently, so that nobody ends that of another process', async () => {
    given = new QuietCluster(cluster);
    await given.move();
    const services = [1, 2, 3].map(() => new LockService(redis({ client: given })));
    await Promise.all(services.map((locks) => locks.withLock('key', () => undefined)));
    const lists = await Promise.all(cluster.servers.map(({ port }) => askRedis(port, 'CLIENT LIST')));
    const names = [...lists.join('\n').matchAll(/ name=(nestjs-distributed-lock\S*)/gu)].map(([, name]) => name);
    expect(names.length).toBeGreaterThanOrEqual(services.length);
    expect(new Set(names).size).toBe(names.length);
    await Promise.all(services.map((locks) => locks.close()));
  });

  it('says why it has no nodes', async () => {
    given = new QuietCluster(cluster);
    given.status = 'connecting';
    await using locks = new LockService(redis({ client: given, patienceMs: 300 }));
    await expect(locks.tryAcquire('key')).rejects.toThrow('is not connected: its status is "connecting"');
  });
});
