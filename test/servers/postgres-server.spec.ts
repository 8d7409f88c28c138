import { Client } from 'pg';

import { itIsGoneAfterKill, itRemovesItsDirectory, stoppingAfterEach } from './describe-own-server.js';
import { PostgresServer } from './postgres-server.js';

describe('PostgresServer', () => {
  const start = stoppingAfterEach((settings?: Readonly<Record<string, string>>) => PostgresServer.start(settings));

  const ask = async ({ url }: PostgresServer, sql: string, withinMs = 1_000) => {
    const client = new Client({ connectionString: url, connectionTimeoutMillis: withinMs });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.query<{ answer: unknown }>(sql)).rows[0]?.answer;
    } finally {
      await client.end();
    }
  };

  it('serves as soon as it has started, several at a time, with further settings', async () => {
    const started = await Promise.all([start(), start({ default_transaction_isolation: 'serializable' })]);
    const level = `select current_setting('default_transaction_isolation') as answer`;
    await expect(Promise.all(started.map((server) => ask(server, level)))).resolves.toEqual([
      'read committed',
      'serializable',
    ]);
  });

  it('does not answer while frozen, on an open connection neither, and does afterwards', async () => {
    const server = await start();
    const client = new Client({ connectionString: server.url });
    await client.connect();
    server.freeze();
    let answered = false;
    const answer = client.query('select 1').then(() => (answered = true));
    await expect(ask(server, 'select 1', 100)).rejects.toThrow('timeout');
    expect(answered).toBe(false);
    server.thaw();
    await answer;
    await client.end();
  });

  itIsGoneAfterKill(start, (server) => ask(server, 'select 1'));

  it('restarts on the same port with what was committed, or empty', async () => {
    const server = await start();
    await ask(server, `create table tree as select 'oak' as answer`);
    await server.restart({ empty: false });
    await expect(ask(server, 'select answer from tree')).resolves.toBe('oak');
    await server.restart({ empty: true });
    await expect(ask(server, 'select answer from tree')).rejects.toMatchObject({ code: '42P01' });
  });

  it('says what is wrong with a setting', async () => {
    await expect(start({ no_such_setting: '1' })).rejects.toThrow('no_such_setting');
  });

  itRemovesItsDirectory(() => PostgresServer.start());
});
