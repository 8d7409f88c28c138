import { LockService } from 'nestjs-distributed-lock/core';
import { memcached } from 'nestjs-distributed-lock/memcached';
import { resolveMemcachedOptions } from '../../../lib/backends/memcached/options.js';
import { MemcachedServers } from '../../../lib/backends/memcached/servers.js';
import { closeAfterEach, describeWanted, eventually, failureOf } from '../../support/index.js';
import { MemcachedServer } from '../../servers/memcached-server.js';
import { Balancer } from './balancer.js';

const LONG_TTL_MS = 60_000;
const SEVERAL = { code: 'LOCK_CONFIGURATION', option: 'servers', message: expect.stringContaining('several servers') };

describeWanted(['memcached'], 'M7: one name', () => {
  let servers: MemcachedServer[];
  let balancer: Balancer;
  const keep = closeAfterEach();

  beforeEach(async () => {
    servers = await Promise.all([MemcachedServer.start(), MemcachedServer.start()]);
    balancer = await Balancer.start(...servers.map(({ port }) => port));
  });
  afterEach(async () => {
    await balancer.close();
    await Promise.all(servers.map((server) => server.stop()));
  });

  const serviceThere = (): LockService => keep(new LockService(memcached({ servers: balancer.address })));
  const leadTo = (...targets: readonly (MemcachedServer | undefined)[]): void => {
    balancer.ports = targets.map((target) => target?.port ?? 0);
  };
  /** Waits until the server's start is surely earlier than the next reply of any server. */
  const runFor = async (server: MemcachedServer | undefined, seconds: number): Promise<void> => {
    await eventually(async () => expect(Number((await server?.statistics())?.get('uptime'))).toBeGreaterThan(seconds), {
      withinMs: 20_000,
    });
  };

  it('that leads to two servers is refused, at the start and until it leads to one, and health says so', async () => {
    const service = serviceThere();
    await expect(failureOf(service.start())).resolves.toMatchObject(SEVERAL);
    for (let i = 0; i < 5; i += 1) await expect(failureOf(service.tryAcquire('k'))).resolves.toMatchObject(SEVERAL);
    expect(service.health).toEqual({ status: 'down', detail: expect.stringContaining('several servers') });
    for (const server of servers) await expect(server.ask('get lock:l:k')).resolves.toBe('END\r\n');
    leadTo(servers[0]);
    await (await eventually(() => service.acquire('k'))).release();
    expect(service.health.status).toBe('up');
  });

  it('that leads to a second server while a process runs is refused with the next reading of the clock', async () => {
    leadTo(servers[0]);
    const running = new MemcachedServers(resolveMemcachedOptions({ servers: balancer.address }));
    await running.start();
    leadTo(servers[1], servers[0]);
    const node = running.getNode('k');
    const readClock = (): Promise<unknown> =>
      node.run(async ({ clock }) => clock.invalidate()).then(() => node.run(async () => undefined));
    await eventually(async () => {
      await readClock().catch(() => undefined);
      expect(running.health.current).toEqual({
        status: 'down',
        detail: expect.stringContaining('several servers'),
      });
    });
    await expect(failureOf(node.run(async () => undefined))).resolves.toMatchObject({
      message: expect.stringContaining('several servers'),
    });
    running.close();
  });

  it('takes no keys from the other servers while it leads to two', async () => {
    const single = await MemcachedServer.start();
    servers.push(single);
    const names = [balancer.address, `127.0.0.1:${single.port}`, `localhost:${single.port}`];
    const several = new MemcachedServers(resolveMemcachedOptions({ servers: names }));
    await expect(several.start()).rejects.toMatchObject(SEVERAL);
    await expect(several.assertSameServerList()).resolves.toBeUndefined();
    several.close();
  });

  it('that leads to another server after a reconnect is used once all connections lead there', async () => {
    leadTo(servers[0]);
    const service = serviceThere();
    await service.acquire('k', { ttlMs: LONG_TTL_MS });
    await runFor(servers[1], 7);
    await expect(service.tryAcquire('other')).resolves.not.toBeNull();
    leadTo(servers[1]);
    balancer.reset();
    await (await eventually(() => service.acquire('k2'))).release();
    await expect(servers[1]?.ask('get lock:f:k2')).resolves.toContain('VALUE');
  });

  it('that leads to a server that started later is that of a restarted server', async () => {
    leadTo(servers[0]);
    const service = serviceThere();
    await (await service.acquire('k')).release();
    await runFor(servers[0], 7);
    await (await service.acquire('k')).release();
    const successor = await MemcachedServer.start();
    servers.push(successor);
    leadTo(successor);
    await servers[0]?.kill();
    await (await eventually(() => service.acquire('k'))).release();
    await expect(successor.ask('get lock:f:k')).resolves.toContain('VALUE');
  });

  it('of a server that lost all items, and then the connection, is as before', async () => {
    leadTo(servers[0]);
    const service = serviceThere();
    await (await service.acquire('k')).release();
    await runFor(servers[0], 7);
    await (await service.acquire('k')).release();
    await servers[0]?.ask('flush_all');
    const other = serviceThere();
    await (await other.acquire('k')).release();
    balancer.reset();
    for (const each of [service, other]) await (await eventually(() => each.acquire('k'))).release();
  });
});
