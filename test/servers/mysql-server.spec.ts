import { createConnection } from 'mysql2/promise';

import { itIsGoneAfterKill, itRemovesItsDirectory, stoppingAfterEach } from './describe-own-server.js';
import { MysqlServer } from './mysql-server.js';

describe('MysqlServer', () => {
  const start = stoppingAfterEach((flags?: readonly string[]) => MysqlServer.start('mariadb', flags));

  const ask = async ({ url }: MysqlServer, sql: string, connectTimeout = 1_000) => {
    const client = await createConnection({ uri: url, connectTimeout });
    try {
      const [rows] = await client.query({ sql, rowsAsArray: true });
      return Array.isArray(rows) && Array.isArray(rows[0]) ? rows[0][0] : undefined;
    } finally {
      client.destroy();
    }
  };

  it('serves as soon as it has started, several at a time, with further flags', async () => {
    const started = await Promise.all([start(), start(['--transaction-isolation=SERIALIZABLE'])]);
    await expect(Promise.all(started.map((server) => ask(server, 'select @@tx_isolation')))).resolves.toEqual([
      'REPEATABLE-READ',
      'SERIALIZABLE',
    ]);
  });

  it('does not answer while frozen, and does afterwards', async () => {
    const server = await start();
    server.freeze();
    await expect(ask(server, 'select 1', 100)).rejects.toThrow('ETIMEDOUT');
    server.thaw();
    await expect(ask(server, 'select 1')).resolves.toBe(1);
  });

  itIsGoneAfterKill(start, (server) => ask(server, 'select 1'));

  it('restarts on the same port with what was committed, or empty', async () => {
    const server = await start();
    await ask(server, `create table tree as select 'oak' as name`);
    await server.restart({ empty: false });
    await expect(ask(server, 'select name from tree')).resolves.toBe('oak');
    await server.restart({ empty: true });
    await expect(ask(server, 'select name from tree')).rejects.toMatchObject({ errno: 1146 });
  });

  it('says what is wrong with a flag', async () => {
    await expect(start(['--no-such-flag'])).rejects.toThrow('no-such-flag');
  });

  itRemovesItsDirectory(() => MysqlServer.start('mariadb'));
});
