import { Cluster } from 'ioredis';
import { Cluster as Cluster5 } from 'ioredis-5';
import { inspect } from 'node:util';
import { LockService } from 'nestjs-distributed-lock/core';
import { redis, type RedisMode, type RedisOptions } from 'nestjs-distributed-lock/redis';
import { slotOf } from '../../../lib/backends/redis/connection/key-slot.js';
import {
  askRedis,
  atLeastMs,
  endAfterEach,
  eventually,
  FaultProxy,
  freePort,
  timeLimitOf,
} from '../../support/index.js';
import { RedisCluster } from '../../servers/redis-cluster.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(600);

const LONG = { ttlMs: 30_000, waitMs: 20_000 };
const OURS = 'name=nestjs-distributed-lock';

describe('a cluster', () => {
  let cluster: RedisCluster;
  const endLater = endAfterEach((end: () => unknown) => end());
  beforeAll(async () => {
    cluster = await RedisCluster.start({ replicas: 0, nodeTimeoutMs: 15_000 });
  });
  afterAll(() => cluster.stop());

  function connect(options: Partial<RedisOptions> = {}, settings = {}): LockService {
    const place = 'client' in options ? {} : { cluster: cluster.addresses };
    const service = new LockService(redis({ ...place, ...options } as RedisOptions), settings);
    endLater(() => service.close(1_000));
    return service;
  }

  const fail = (): never => {
    throw new Error('there are three servers');
  };
  const everywhere = (command: string) => Promise.all(cluster.servers.map(({ port }) => askRedis(port, command)));
  /** A key of the server in this place. */
  async function keyOn(place: number): Promise<string> {
    for (let i = 0; ; i += 1)
      if ((await cluster.masterOf(`lock:{key-${i}}`)) === cluster.servers[place]) return `key-${i}`;
  }

  it('has the slots that we think it has', async () => {
    for (const key of ['key', 'lock:{key}', 'a{b}c{d}', '{}x', '{', '}{', 'ü', '🔒', '', 'x'.repeat(300), '{ }', "'"]) {
      const [slot] = await everywhere(`CLUSTER KEYSLOT "${key}"`);
      expect([key, slotOf(key)]).toEqual([key, Number(slot)]);
    }
  });

  type Maker = () => Cluster | Cluster5;
  const given: readonly [version: string, mode: RedisMode, make: Maker][] = [
    ['ioredis 6', 'queue', () => new Cluster(cluster.addresses)],
    ['ioredis 6', 'plain', () => new Cluster(cluster.addresses)],
    ['ioredis 6', 'getset', () => new Cluster(cluster.addresses)],
    ['ioredis 6, lazy', 'queue', () => new Cluster(cluster.addresses, { lazyConnect: true })],
    ['ioredis 6, key prefix', 'queue', () => new Cluster(cluster.addresses, { keyPrefix: 'app:' })],
    ['ioredis 6, key prefix with a tag', 'queue', () => new Cluster(cluster.addresses, { keyPrefix: '{app}' })],
    ['ioredis 5', 'queue', () => new Cluster5(cluster.addresses)],
    ['ioredis 5, key prefix', 'queue', () => new Cluster5(cluster.addresses, { redisOptions: { keyPrefix: 'app:' } })],
  ];

  it.each(given)(
    'given as a Cluster of %s is the model for our own connections, and stays as it was (%s)',
    async (_version, mode, make) => {
      const client = make();
      endLater(() => client.disconnect());
      const [a, b] = [new LockService(redis({ client, mode })), new LockService(redis({ client, mode }))];
      const ttlMs = atLeastMs(1_000);
      const first = await a.acquire('key', { ttlMs });
      const waiting = b.acquire('key', LONG);
      await new Promise((resolve) => setTimeout(resolve, ttlMs * 1.3));
      expect(first.isHeld).toBe(true);
      await first.release();
      const second = await waiting;
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      await second.release();
      await Promise.all([a.close(), b.close()]);
      await expect(client.set('mine', 'yes')).resolves.toBe('OK');
      await eventually(async () => expect((await everywhere('CLIENT LIST')).join()).not.toContain(OURS));
    },
  );

  it('that is silent at the start is reported, and its listeners are told when it answers', async () => {
    cluster.freeze();
    try {
      const service = connect({ requestTimeoutMs: timeLimitOf(200) });
      const states: string[] = [];
      service.backend.health.onChange(({ status }) => states.push(status));
      await service.start();
      expect(states).toEqual(['down']);
      cluster.thaw();
      await eventually(() => expect(states).toEqual(['down', 'up']));
      expect(service.health.status).toBe('up');
    } finally {
      cluster.thaw();
    }
  });

  it('wakes its waiters by sharded messages, which cross to no other node', async () => {
    const key = await keyOn(1);
    const before = await pubSubCalls();
    const [port = 0] = cluster.servers.slice(1).map((server) => server.port);
    const lock = await connect().acquire(key, LONG);
    const visits = [connect(), connect()].map((service) => service.withLock(key, () => undefined, LONG));
    await eventually(async () => expect(await askRedis(port, `LLEN lock:{${key}}:q`)).toBe('2'));
    await lock.release();
    await Promise.all(visits);
    const calls = (await pubSubCalls()).map(({ plain, sharded }, i) => ({
      plain: plain - (before[i]?.plain ?? 0),
      sharded: sharded - (before[i]?.sharded ?? 0),
    }));
    expect(calls.map(({ plain }) => plain)).toEqual([0, 0, 0]);
    expect(calls.map(({ sharded }) => sharded > 0)).toEqual([false, true, false]);
  });

  async function pubSubCalls() {
    const stats = await Promise.all(cluster.servers.map((server) => server.commandStats()));
    return stats.map((calls) => ({ plain: calls.get('publish') ?? 0, sharded: calls.get('spublish') ?? 0 }));
  }

  it('is reached through other addresses, by natMap', async () => {
    const proxies = await Promise.all(cluster.servers.map((server) => FaultProxy.start(server)));
    endLater(() => Promise.all(proxies.map((proxy) => proxy.close())));
    const addresses = proxies.map(({ port }) => ({ host: '127.0.0.1', port }));
    const natMap = Object.fromEntries(
      cluster.servers.map(({ port }, i) => [`127.0.0.1:${port}`, addresses[i] ?? fail()]),
    );
    const service = connect({ cluster: addresses, natMap });
    for (const place of [0, 1, 2]) await service.withLock(await keyOn(place), () => undefined);
    // Connections to the addresses of the seeds end when all nodes have answered.
    await eventually(() => expect(proxies.map(({ connections }) => connections)).toEqual([1, 1, 1]));
  });

  it('is found by any node that answers, however many do not', async () => {
    const dead = { host: '127.0.0.1', port: await freePort() };
    const proxies = await Promise.all(cluster.servers.map((server) => FaultProxy.start(server)));
    endLater(() => Promise.all(proxies.map((proxy) => proxy.close())));
    for (const proxy of proxies) proxy.drop();
    const silent = proxies.map(({ port }) => ({ host: '127.0.0.1', port }));
    const [last] = cluster.addresses;
    const service = connect({ cluster: [dead, ...silent, last ?? fail()] });
    await expect(service.withLock('key', () => 'in')).resolves.toBe('in');
    expect(service.health).toEqual({ status: 'up', nodes: expect.any(Array) });
  });

  it('of which nobody answers is an error that names the reasons, in time, and is found later', async () => {
    const port = await freePort();
    const service = connect({ cluster: [{ host: '127.0.0.1', port }], patienceMs: 300 });
    await expect(service.acquire('key', LONG)).rejects.toThrow(/no node of the cluster answers: .*ECONNREFUSED/);
    expect(service.health).toMatchObject({ status: 'down', detail: expect.stringContaining('ECONNREFUSED') });
  });

  it('one silent node is a trouble of its own keys: the others are doubted for a moment, and stay held', async () => {
    const events: string[] = [];
    const note =
      (event: string) =>
      ({ key }: { key: string }) =>
        void events.push(`${key} ${event}`);
    const observers = [{ jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') }];
    const [silent, well, other] = await Promise.all([keyOn(0), keyOn(1), keyOn(2)]);
    const ttlMs = atLeastMs(1_500) * 2;
    const requestTimeoutMs = Math.ceil(ttlMs / 15);
    const service = connect({ requestTimeoutMs }, { observers });
    const locks = [await service.acquire(silent, { ttlMs }), await service.acquire(well, { ttlMs })];
    cluster.servers[0]?.freeze();
    try {
      await eventually(() => expect(events).toEqual(expect.arrayContaining([`${silent} jeopardy`, `${well} safe`])));
      expect(service.health).toMatchObject({
        status: 'up',
        detail: expect.stringMatching(`^127\\.0\\.0\\.1:\\d+ is down: no answer within ${requestTimeoutMs} ms$`),
      });
      await expect(service.withLock(other, () => 'in')).resolves.toBe('in');
    } finally {
      cluster.servers[0]?.thaw();
    }
    await eventually(() => expect(events).toContain(`${silent} safe`));
    await eventually(() => expect(service.health).toEqual({ status: 'up', nodes: expect.any(Array) }));
    expect(locks.map((lock) => lock.isHeld)).toEqual([true, true]);
    expect(events.filter((event) => event.endsWith('lost'))).toEqual([]);
  });

  describe('rights and secrets', () => {
    const password = 'c4n4ry-p4ssw0rd';
    const RIGHTS =
      '~lock:* &lock:* &__redis__:invalidate +subscribe +client|id +client|tracking +client|caching +eval +evalsha +get +set +del +pttl +pexpire +time +spublish +ssubscribe +sunsubscribe +exists +lindex +lpos +lrem +rpush +hget +hset +hdel +info +cluster|slots +asking +wait';

    it('the rights in the documentation are enough', async () => {
      await everywhere(`ACL SETUSER app reset on >${password} ${RIGHTS}`);
      await everywhere('ACL LOG RESET');
      const access = { credentials: { username: 'app', password } };
      const [a, b] = [connect(access), connect(access)];
      const lock = await a.acquire('key', { ttlMs: TTL_MS });
      const waiting = b.acquire('key', LONG);
      await new Promise((resolve) => setTimeout(resolve, TTL_MS + 100));
      expect(lock.isHeld).toBe(true);
      await lock.release();
      await (await waiting).release();
      const up = { status: 'up', nodes: expect.any(Array) };
      expect([a.health, b.health]).toEqual([up, up]);
    });

    it('R15: the password is in no error and in nothing that is printed', async () => {
      await everywhere(`ACL SETUSER app reset on >${password} ${RIGHTS}`);
      const service = connect({ credentials: { username: 'app', password: `${password}-wrong` }, patienceMs: 100 });
      const error: unknown = await service.acquire('key', LONG).catch((reason: unknown) => reason);
      const shown = inspect([error, service, service.backend, service.health], { depth: 20 });
      expect(shown).toContain('WRONGPASS');
      expect(shown).not.toContain(password);
    });
  });
});
