import { LockService } from 'nestjs-distributed-lock/core';
import { mysql, rowClient } from 'nestjs-distributed-lock/mysql';
import { postgres } from 'nestjs-distributed-lock/postgres';
import { MysqlServer } from '../../servers/mysql-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';
import { closeAfterEach, describeWanted, FaultProxy } from '../../support/index.js';

const LONG_MS = 60_000;

const keep = closeAfterEach();

describeWanted(['mariadb'], 'connections of row locks, %s', () => {
  const server = MysqlServer.shared('mariadb');

  it("keep the server's own time limit for holders, after a waiter that gave up", async () => {
    const options = { synchronize: true, url: server.url, strategy: 'row', poolSize: 1 } as const;
    const [ours, theirs] = [keep(new LockService(mysql(options))), keep(new LockService(mysql(options)))];
    // The row of the key is there: making it sets the limit, too.
    await ours.withLock('other', () => undefined);
    await theirs.acquire('k', { ttlMs: LONG_MS });
    await expect(ours.acquire('k', { waitMs: 1_500 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    const limits = await ours.withLock('other', async (lock) => {
      const [rows] = await rowClient(lock).query(
        'select @@session.innodb_lock_wait_timeout as own, @@global.innodb_lock_wait_timeout as usual',
      );
      return rows;
    });
    expect(limits).toEqual([{ own: 50, usual: 50 }]);
  });
});

describeWanted(['postgres'], 'connections of row locks, %s', () => {
  let server: PostgresServer;
  let proxy: FaultProxy;
  const open = (poolSize: number): LockService => {
    const url = Object.assign(new URL(server.url), { port: String(proxy.port) }).href;
    return keep(new LockService(postgres({ synchronize: true, url, strategy: 'row', poolSize })));
  };
  beforeAll(async () => {
    server = await PostgresServer.start();
    proxy = await FaultProxy.start(server);
  });
  afterAll(async () => {
    proxy.resume();
    await proxy.close();
    await server.stop();
  });

  it('are replaced when the next request finds them reset', async () => {
    const service = open(1);
    for (let round = 0; round < 20; round += 1) {
      await service.withLock('k', () => undefined, { waitMs: 0 });
      const stopListening = proxy.onRequest(() => {
        stopListening();
        proxy.reset();
      });
      await service.withLock('k', () => undefined, { waitMs: 0 });
    }
  });

  it('are not missing because the server is down: health stays up while all are in use', async () => {
    const service = open(1);
    const lock = await service.acquire('held', { ttlMs: LONG_MS });
    const statuses: string[] = [];
    service.backend.health.onChange(({ status }) => void statuses.push(status));
    for (const key of ['a', 'b', 'c', 'd'])
      await expect(service.tryAcquire(key)).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    await lock.release();
    await service.withLock('a', () => undefined);
    expect(statuses).toEqual([]);
  });
});
