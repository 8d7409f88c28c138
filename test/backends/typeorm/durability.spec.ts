import { LockService } from 'nestjs-distributed-lock/core';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { MysqlServer } from '../../servers/mysql-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';
import { describeWanted } from '../../support/wanted-backends.js';

const MARIADB_FLUSHES = ['--innodb-flush-log-at-trx-commit=1', '--innodb-flush-method=fsync'];

type Server = PostgresServer | MysqlServer;

/** How a server is started, and what an operator should change about it. */
const SERVERS: Record<'postgres' | 'mariadb', [start: () => Promise<Server>, advice: string | undefined][]> = {
  postgres: [
    [() => PostgresServer.start({ fsync: 'on' }), undefined],
    // One session sets what it may set itself.
    [() => PostgresServer.start({ fsync: 'on', synchronous_commit: 'off' }), undefined],
    [() => PostgresServer.start({ fsync: 'off' }), 'fsync is off, switch it on'],
  ],
  mariadb: [
    [() => MysqlServer.start('mariadb', MARIADB_FLUSHES), undefined],
    [
      () => MysqlServer.start('mariadb', ['--innodb-flush-log-at-trx-commit=0']),
      'innodb_flush_log_at_trx_commit is 0, set it to 1',
    ],
    [
      () => MysqlServer.start('mariadb', ['--innodb-flush-log-at-trx-commit=2']),
      'innodb_flush_log_at_trx_commit is 2, set it to 1',
    ],
    [
      () => MysqlServer.start('mariadb', [...MARIADB_FLUSHES, '--log-bin=binlog', '--sync-binlog=0']),
      'sync_binlog is 0, set it to 1',
    ],
  ],
};

describeWanted(['postgres', 'mariadb'], 'a lease of a server that may forget what it confirmed, %s', (type) => {
  const opened: { stop(): Promise<void> }[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((one) => one.stop())));

  it.each(SERVERS[type])(
    'is called durable only where it is, and health says what to change: %#',
    async (start, advice) => {
      const server = await start();
      const { url } = server;
      const service = new LockService(typeorm({ dataSource: { options: { type, url } }, synchronize: true }));
      opened.push(server, { stop: () => service.close() });
      expect(service.backend.guarantee).toBe('best-effort');
      await (await service.acquire('k')).release();
      expect(service.backend.guarantee).toBe(advice === undefined ? 'durable' : 'best-effort');
      expect(service.health.status).toBe('up');
      if (advice === undefined) expect(service.health.detail).toBeUndefined();
      else expect(service.health.detail).toBe(`a crash can undo grants: ${advice}`);
    },
  );
});
