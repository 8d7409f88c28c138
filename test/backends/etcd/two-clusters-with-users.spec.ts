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
import { Http2Proxy, type OwnAnswer, pageOf } from './http2-proxy.js';
import { EtcdOperator } from './operator.js';
import { CHEAP, CREDENTIALS, enableUsers } from './users.js';

const refusalOf = (status: string, message: string): OwnAnswer => ({
  headers: { ':status': 200, 'content-type': 'application/grpc' },
  trailers: { 'grpc-status': status, 'grpc-message': message },
});
/** As etcd 3.5.28 and 3.6 answer whoever does not say who they are. */
const NOBODY = refusalOf('3', 'etcdserver: user name is empty');
const FORBIDDEN = refusalOf('7', 'etcdserver: permission denied');

describeWanted(['etcd'], 'endpoints of clusters of etcd that have users', () => {
  const keep = closeAfterEach();
  const endLater = endAfterEach((proxy: Http2Proxy) => proxy[Symbol.asyncDispose]());
  const stopLater = endAfterEach((server: EtcdServer) => server.stop());
  const startServer = async (): Promise<EtcdServer> => {
    const server = stopLater(await EtcdServer.start({ args: CHEAP }));
    await enableUsers({ server, operator: new EtcdOperator(server.urls) });
    return server;
  };
  /** A way to the server that does not tell its status to everybody. */
  const startProxy = async (server: EtcdServer): Promise<Http2Proxy> => {
    const proxy = endLater(await Http2Proxy.start(server.urls[0] ?? ''));
    proxy.answer = (path) => (path.endsWith('/Status') ? NOBODY : undefined);
    return proxy;
  };
  const startCluster = async (): Promise<Http2Proxy> => startProxy(await startServer());
  const open = (endpoints: readonly string[]): LockService => {
    const options = { endpoints, credentials: CREDENTIALS, sessionTtlMs: 5_000, patienceMs: 2_000 };
    return keep(new LockService(etcd(options)));
  };

  it('are refused at the start when there are two', async () => {
    const proxies = await Promise.all([startCluster(), startCluster()]);
    // Which one is asked first is left to chance.
    for (let round = 0; round < 4; round += 1) {
      const error = await failureOf(open(proxies.map(({ url }) => url)).start());
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error).toMatchObject({ option: 'endpoints' });
    }
  });

  it('are used again when the cluster was rebuilt', async () => {
    const [former, rebuilt] = await Promise.all([startCluster(), startCluster()]);
    const address = keep(await FaultProxy.start({ port: Number(new URL(former.url).port) }));
    const service = open([`http://127.0.0.1:${address.port}`]);
    const lock = await service.acquire('k');
    const told = aborted(lock.signal);
    address.redirect({ port: Number(new URL(rebuilt.url).port) });
    address.reset();
    await told;
    await eventually(() => service.withLock('k', () => undefined), { withinMs: 5_000, everyMs: 50 });
    expect(service.health.status).toBe('up');
  });

  it('keep the token of a cluster that is the same as before, whatever else has failed', async () => {
    const proxy = await startCluster();
    const service = open([proxy.url]);
    await (await service.acquire('k')).release();
    const loginCount = proxy.counts['Authenticate'];
    proxy.answer = (path) => (path.endsWith('/Txn') ? pageOf(503) : undefined);
    await expect(service.tryAcquire('k')).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    proxy.answer = () => undefined;
    await eventually(() => service.withLock('k', () => undefined));
    expect(proxy.counts['Authenticate']).toBe(loginCount);
  });

  it('are named in health while one of them refuses to be compared', async () => {
    const server = await startServer();
    const [one, other] = await Promise.all([startProxy(server), startProxy(server)]);
    other.answer = (path) => (path.endsWith('/Range') ? FORBIDDEN : undefined);
    const service = open([one.url, other.url]);
    await service.start();
    expect(service.health).toMatchObject({ detail: expect.stringMatching(/refuses to say .* permission denied/u) });
    expect(service.health.detail).toContain(other.url);
  });

  it('say in health why a cluster that was rebuilt cannot be used', async () => {
    const [former, rebuilt] = await Promise.all([startCluster(), startCluster()]);
    const address = keep(await FaultProxy.start({ port: Number(new URL(former.url).port) }));
    const service = open([`http://127.0.0.1:${address.port}`]);
    await (await service.acquire('k')).release();
    rebuilt.answer = (path) => (path.endsWith('/Range') ? FORBIDDEN : undefined);
    address.redirect({ port: Number(new URL(rebuilt.url).port) });
    address.reset();
    await eventually(
      async () => {
        await failureOf(service.tryAcquire('k'));
        expect(service.health.detail).toContain('permission denied');
      },
      { withinMs: 20_000 },
    );
    expect(service.health.status).toBe('down');
    rebuilt.answer = () => undefined;
    await eventually(() => expect(service.health).toEqual({ status: 'up' }), { withinMs: 20_000 });
  });
});
