import { Redis } from 'ioredis';
import { LockService, ReportedHealth } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { createSentinelSource } from '../../../lib/backends/redis/sentinel/sentinel-source.js';
import { askRedis, endAfterEach, eventually, FaultProxy, RedisServer, throughout } from '../../support/index.js';
import { RedisSentinels, Sentinel } from '../../servers/redis-sentinels.js';

describe.each(['ioredis', 'redis'] as const)('Sentinels that disagree about the master (%s)', (clientPackage) => {
  let set: RedisSentinels;
  const endLater = endAfterEach((end: () => unknown) => end());
  beforeAll(async () => {
    set = await RedisSentinels.start({ downAfterMs: 10_000 });
  });
  afterAll(() => set.stop());

  function connect(options: object = {}): LockService {
    const service = new LockService(redis({ sentinels: set.addresses, name: set.name, clientPackage, ...options }));
    endLater(() => service.close(1_000));
    return service;
  }

  it('a Sentinel that names a replica is passed over', async () => {
    const [, replica] = set.servers;
    // It hears of no other master, because no failover has made the configuration of the others newer than its own.
    const staleSentinel = await Sentinel.start(set.name, Number(replica?.port), 60_000);
    endLater(() => staleSentinel.stop());
    expect(await askRedis(staleSentinel.port, 'INFO sentinel')).toContain(`address=127.0.0.1:${replica?.port}`);
    const service = connect({ sentinels: [{ host: '127.0.0.1', port: staleSentinel.port }, ...set.addresses] });
    await expect(service.withLock('key', () => 'in')).resolves.toBe('in');
    expect(service.health.status).toBe('up');
    const master = await set.master();
    expect(await askRedis(master.port, 'CLIENT LIST')).toContain('name=nestjs-distributed-lock');
  });

  it('a Sentinel that names a server which does not answer is not asked for ever', async () => {
    const silentServer = await RedisServer.start();
    endLater(() => silentServer.stop());
    const staleSentinel = await Sentinel.start(set.name, silentServer.port, 60_000);
    endLater(() => staleSentinel.stop());
    silentServer.freeze();
    const sentinels = [{ host: '127.0.0.1', port: staleSentinel.port }, ...set.addresses];
    await expect(connect({ sentinels }).withLock('key', () => 'in', { waitMs: 60_000 })).resolves.toBe('in');
  });

  it('each announcement of a new master is heard, and only the first ends the connection', async () => {
    const [formerMaster, replica] = set.servers;
    const proxy = await FaultProxy.start({ port: Number(replica?.port) });
    endLater(() => proxy.close());
    const natMap = { [`127.0.0.1:${replica?.port}`]: { host: '127.0.0.1', port: proxy.port } };
    const addresses: unknown[] = [];
    const source = createSentinelSource({ sentinels: set.addresses, name: set.name, natMap }, clientPackage);
    const stopWatching = source.watchMaster?.(new ReportedHealth(), (address) => void addresses.push(address));
    endLater(() => stopWatching?.());

    let connectionCount = 0;
    proxy.onRequest((chunk) => (connectionCount += /setname/iu.test(chunk.toString('latin1')) ? 1 : 0));
    const service = connect({ natMap });
    await service.withLock('key', () => undefined);
    const toldPorts = new Set<number>();
    for (const { port } of set.sentinels) {
      const listener = new Redis({ port });
      endLater(() => listener.disconnect());
      await listener.subscribe('+switch-master');
      listener.on('message', () => toldPorts.add(port));
      // The two watches of this process, and the listener.
      await eventually(async () =>
        expect((await askRedis(port, 'CLIENT LIST')).match(/ sub=1 /gu)?.length).toBeGreaterThanOrEqual(3),
      );
    }
    const [sentinel] = set.sentinels;
    // A new replica must be known and synchronized before it can be promoted.
    await eventually(
      async () => expect(await askRedis(sentinel?.port ?? 0, `SENTINEL FAILOVER ${set.name}`)).toMatch(/OK/),
      { withinMs: 20_000, everyMs: 200 },
    );
    await eventually(() => expect(toldPorts.size).toBe(set.sentinels.length), { withinMs: 20_000 });
    await eventually(() =>
      expect(addresses).toEqual(set.sentinels.map(() => ({ host: '127.0.0.1', port: proxy.port }))),
    );
    expect(await set.master()).not.toBe(formerMaster);
    await service.withLock('key', () => undefined);
    await throughout(200, () => expect(connectionCount).toBe(1));
  });
});
