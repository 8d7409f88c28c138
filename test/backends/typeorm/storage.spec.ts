import { existsSync } from 'node:fs';
import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { mysql } from 'nestjs-distributed-lock/mysql';
import { typeorm, type TypeOrmOptions } from 'nestjs-distributed-lock/typeorm';
import { DataSource } from 'typeorm';
import { closeAfterEach, describeWanted, endAfterEach, failureOf, freePort, timeLimitOf } from '../../support/index.js';
import { MysqlServer } from '../../servers/mysql-server.js';
import { PostgresServer } from '../../servers/postgres-server.js';

/** Debian's package galera-4. */
const GALERA = '/usr/lib/galera/libgalera_smm.so';
const keep = closeAfterEach();
const stopLater = endAfterEach((server: MysqlServer | PostgresServer) => server.stop());

const serviceOn = (type: 'postgres' | 'mariadb', url: string, options: Partial<TypeOrmOptions> = {}): LockService => {
  return keep(new LockService(typeorm({ dataSource: { options: { type, url } }, synchronize: true, ...options })));
};

const operatorOf = async (type: 'postgres' | 'mariadb', url: string): Promise<DataSource> => {
  const operator = await new DataSource({ type, url }).initialize();
  keep({ close: () => operator.destroy() });
  return operator;
};

describeWanted(['mariadb'], 'S12: a table that is not of InnoDB', (type) => {
  it.each(['lease', 'row', 'session'] as const)('is refused, as it has no transactions: %s', async (strategy) => {
    const server = await MysqlServer.start('mariadb');
    stopLater(server);
    const operator = await operatorOf(type, server.url);
    await (await serviceOn(type, server.url).acquire('k')).release();
    await operator.query('alter table distributed_lock engine = MyISAM');
    const error = await failureOf(serviceOn(type, server.url, { strategy }).acquire('k'));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error)).toContain('its engine is MyISAM, and locks need InnoDB');
    await operator.query('alter table distributed_lock engine = InnoDB');
    await (await serviceOn(type, server.url, { strategy }).acquire('k')).release();
  });

  it('keeps the leases of older programs, best-effort', async () => {
    const server = await MysqlServer.start('mariadb');
    stopLater(server);
    const operator = await operatorOf(type, server.url);
    const columns = 'method_name varchar(64) not null unique, client_id varchar(255)';
    await operator.query(`create table method_lock (${columns}) engine = MyISAM`);
    const table = { tableName: 'method_lock', columns: { key: 'method_name', owner: 'client_id' } };
    const service = serviceOn(type, server.url, table);
    await (await service.acquire('k')).release();
    expect(service.backend.guarantee).toBe('best-effort');
    expect(service.health.detail).toBe("a crash can undo grants: the table's engine is MyISAM, make it InnoDB");
  });
});

describeWanted(['mariadb'], 'a server of a Galera cluster', (type) => {
  const withGalera = existsSync(GALERA) ? it : it.skip;
  const startNode = async (): Promise<MysqlServer> => {
    const cluster = ['--wsrep-cluster-address=gcomm://', `--wsrep-provider=${GALERA}`];
    return stopLater(
      await MysqlServer.start('mariadb', [
        '--wsrep-on=ON',
        ...cluster,
        '--binlog-format=ROW',
        '--innodb-autoinc-lock-mode=2',
        '--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:0;pc.recovery=false;gcache.size=1M',
      ]),
    );
  };

  withGalera('is left for the next url when it is outside of the cluster, and passed over from then on', async () => {
    const [node, next] = await Promise.all([startNode(), MysqlServer.start('mariadb').then(stopLater)]);
    const open = () => keep(new LockService(mysql({ url: [node.url, next.url], synchronize: true })));
    const connected = open();
    await (await connected.acquire('k')).release();
    const operator = await operatorOf(type, node.url);
    await operator.query(`set global wsrep_cluster_address = 'gcomm://127.0.0.1:${await freePort()}?pc.wait_prim=no'`);
    await expect(operator.query('select 1 from test.distributed_lock')).rejects.toMatchObject({ errno: 1047 });
    for (const service of [connected, open()]) {
      await (await service.acquire('k', { waitMs: timeLimitOf(10_000) })).release();
    }
  });

  withGalera('refuses rows and sessions, which exclude nobody on the other servers, and has leases', async () => {
    const server = await startNode();
    await (await serviceOn(type, server.url).acquire('k')).release();
    for (const strategy of ['row', 'session'] as const) {
      const error = await failureOf(serviceOn(type, server.url, { strategy }).acquire('k'));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(String(error)).toContain(`strategy '${strategy}' locks on one server only`);
    }
  });
});

describeWanted(['postgres'], 'an UNLOGGED table of PostgreSQL', (type) => {
  it('gives best-effort leases, and says what to change', async () => {
    const server = await PostgresServer.start({ fsync: 'on' });
    stopLater(server);
    const operator = await operatorOf(type, server.url);
    await (await serviceOn(type, server.url).acquire('k')).release();
    await operator.query('alter table distributed_lock set unlogged');
    const service = serviceOn(type, server.url);
    await (await service.acquire('k')).release();
    expect(service.backend.guarantee).toBe('best-effort');
    expect(service.health.detail).toBe('a crash empties the table, which is UNLOGGED: alter table … set logged');
    await operator.query('alter table distributed_lock set logged');
    const again = serviceOn(type, server.url);
    await (await again.acquire('k')).release();
    expect(again.backend.guarantee).toBe('durable');
  });
});
