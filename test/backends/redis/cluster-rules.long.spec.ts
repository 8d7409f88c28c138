import { type LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { ClusterNodes } from '../../../lib/backends/redis/cluster/cluster-nodes.js';
import { createClusterSource } from '../../../lib/backends/redis/cluster/cluster-source.js';
import {
  askRedis,
  closeAfterEach,
  eventually,
  FaultProxy,
  freePort,
  RedisServer,
  throughout,
} from '../../support/index.js';
import { atLeastMs, timeLimitOf } from '../../support/machine.js';
import '../../support/slow-machine.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(2_000);
const LOCKS = 50;

/** A stand-in for managed clusters behind one address: one server that has all slots and follows the rules of a cluster. */
describe('one address with the rules of a cluster', () => {
  let server: RedisServer;
  const keep = closeAfterEach();

  beforeAll(async () => {
    const bus = String(await freePort());
    server = await RedisServer.start({
      args: ['--cluster-enabled', 'yes', '--cluster-port', bus, '--cluster-config-file', `nodes-${bus}.conf`],
    });
    await askRedis(server.port, 'CLUSTER ADDSLOTSRANGE 0 16383');
    await eventually(async () => expect(await askRedis(server.port, 'CLUSTER INFO')).toContain('cluster_state:ok'));
  });
  afterAll(() => server.stop());

  const locksOf = (mode: 'queue' | 'plain', lost: string[] = []): LockService => {
    const observer = { lost: ({ key }: { key: string }) => void lost.push(key) };
    return keep(new LockService(redis({ url: server.url, mode }), { observers: [observer] }));
  };

  it.each(['queue', 'plain'] as const)('keeps 50 locks of two services for three TTLs (%s)', async (mode) => {
    const lost: string[] = [];
    const [one, two] = [locksOf(mode, lost), locksOf(mode, lost)];
    const held: LockHandle[] = await Promise.all(
      Array.from({ length: LOCKS }, (_, i) => (i % 2 === 0 ? one : two).acquire(`${mode}-${i}`, { ttlMs: TTL_MS })),
    );
    const before = await server.commandStats();
    await throughout(3 * TTL_MS, () => expect(held.every(({ isHeld }) => isHeld)).toBe(true));
    const after = await server.commandStats();
    const sent = (after.get('evalsha') ?? 0) - (before.get('evalsha') ?? 0);
    process.stdout.write(
      `${mode}, cluster rules: ${LOCKS} locks, ${(sent / 9).toFixed(1)} commands a round of renewals\n`,
    );
    expect(lost).toEqual([]);
    expect(one.health).toMatchObject({ status: 'up', detail: expect.stringContaining('CROSSSLOT') });
    await Promise.all(held.map((lock) => lock.release()));
    const free = await Promise.all(held.map(({ key }) => two.tryAcquire(key)));
    expect(free.every((lock) => lock !== null)).toBe(true);
    for (const lock of free) await lock?.release();
  });

  it('frees all locks that are released in one turn, also the first ones', async () => {
    const locks = locksOf('queue');
    const failures: string[] = [];
    locks.observe({ backendFailed: ({ error }) => void failures.push(String(error)) });
    const held = [await locks.acquire('first'), await locks.acquire('second'), await locks.acquire('third')];
    await Promise.all(held.map((lock) => lock.release()));
    expect(failures).toEqual([]);
    const other = locksOf('queue');
    for (const { key } of held) await expect(other.withLock(key, () => 'in', { waitMs: 0 })).resolves.toBe('in');
  });

  it('answers a request on a node that the map of slots does not have, also when the map is loaded meanwhile', async () => {
    const proxy = await FaultProxy.start({ port: server.port });
    const seeds = [{ host: '127.0.0.1', port: server.port }];
    const nodes = new ClusterNodes(createClusterSource({ cluster: seeds }), timeLimitOf(2_000));
    try {
      await nodes.loadSlots();
      proxy.pause();
      const reply = nodes.connectionTo(`127.0.0.1:${proxy.port}`).sendCommand('ECHO', 'still answered');
      const { masters } = await nodes.loadSlots();
      expect(masters).not.toContain(`127.0.0.1:${proxy.port}`);
      proxy.resume();
      await expect(reply).resolves.toBe('still answered');
    } finally {
      await nodes.close();
      await proxy.close();
    }
  });
});
