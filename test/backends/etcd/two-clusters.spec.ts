import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { etcd } from 'nestjs-distributed-lock/etcd';
import {
  aborted,
  closeAfterEach,
  describeWanted,
  endAfterEach,
  eventually,
  failureOf,
  FaultProxy,
} from '../../support/index.js';
import { EtcdServer } from '../../servers/etcd-server.js';

/** A member that was started as a cluster of its own: https://github.com/gardener/etcd-druid/issues/361 */
describeWanted(['etcd'], 'endpoints of two clusters of etcd', () => {
  const keep = closeAfterEach();
  const stopLater = endAfterEach((server: EtcdServer) => server.stop());
  const startServer = async (): Promise<EtcdServer> => stopLater(await EtcdServer.start());
  const open = (endpoints: readonly string[]): LockService =>
    keep(new LockService(etcd({ endpoints, sessionTtlMs: 5_000, patienceMs: 2_000 })));

  it('are refused at the start, by name, and lock nothing', async () => {
    const servers = await Promise.all([startServer(), startServer()]);
    const endpoints = servers.flatMap(({ urls }) => urls);
    // Which one is asked first is left to chance.
    const services = Array.from({ length: 10 }, () => open(endpoints));
    for (const service of services) {
      const error = await failureOf(service.start());
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error).toMatchObject({ option: 'endpoints' });
      for (const endpoint of endpoints) expect(String(error)).toContain(endpoint);
      await expect(failureOf(service.tryAcquire('k'))).resolves.toBeInstanceOf(LockConfigurationError);
      expect(service.health).toMatchObject({
        status: 'down',
        detail: expect.stringContaining('one cluster of etcd'),
      });
    }
  });

  it('are refused when the other cluster first answers later: what was held is lost', async () => {
    const [one, other] = await Promise.all([startServer(), startServer()]);
    await other.kill();
    const service = open([...one.urls, ...other.urls]);
    await service.start();
    const lock = await service.acquire('k');
    const told = aborted(lock.signal);
    await Promise.all(other.members.map((member) => member.launch()));
    await one.kill();
    await told;
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
    await eventually(async () => {
      const error = await failureOf(service.tryAcquire('k'));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(String(error)).toContain(other.urls[0]);
    });
    await Promise.all(one.members.map((member) => member.launch()));
    await expect(failureOf(service.tryAcquire('k'))).resolves.toBeInstanceOf(LockConfigurationError);
  });

  it('of a cluster that was rebuilt are used again, and what was held is lost', async () => {
    const [former, rebuilt] = await Promise.all([startServer(), startServer()]);
    const address = keep(await FaultProxy.start({ port: Number(new URL(former.urls[0] ?? '').port) }));
    const service = open([`http://127.0.0.1:${address.port}`]);
    const lock = await service.acquire('k');
    const told = aborted(lock.signal);
    address.redirect({ port: Number(new URL(rebuilt.urls[0] ?? '').port) });
    await former.kill();
    await told;
    await eventually(() => service.withLock('k', () => undefined), { withinMs: 20_000 });
    expect(service.health.status).toBe('up');
  });

  it('in one cluster are one, whoever is down at the start', async () => {
    const server = await startServer();
    const [url = ''] = server.urls;
    const down = await startServer();
    await down.kill();
    const service = open([url, `${url}/`, ...down.urls]);
    await service.start();
    await expect(service.tryAcquire('k')).resolves.not.toBeNull();
  });
});
