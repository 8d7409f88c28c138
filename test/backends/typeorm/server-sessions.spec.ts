import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { queryOn } from '../../../lib/backends/typeorm/connections/query.js';
import { rowLocksOf } from '../../../lib/backends/typeorm/databases.js';
import { eventually } from '../../support/eventually.js';
import { describeServers, SqlWorld } from './sql-world.js';

describeServers('the sessions of a server', (type) => {
  const world = new SqlWorld(type);
  beforeAll(() => world.start());
  afterAll(() => world.stop());

  it('are at work during a statement, and not between two or after their end', async () => {
    const { serverSessions } = rowLocksOf(type);
    const dataSource = await new DataSource({ type, url: world.url, poolSize: 1 }).initialize();
    const runner = dataSource.createQueryRunner();
    const id = serverSessions.handshakeId(await runner.connect()) ?? '';
    const isAtWork = (): Promise<boolean> => serverSessions.isAnyAtWork(queryOn({ query: ask }), [id, '2147483647']);
    const ask = (sql: string, parameters: unknown[] = []): Promise<unknown> => world.harness.ask(sql, parameters);
    expect(await isAtWork()).toBe(false);
    const statement = runner
      .query(type === 'postgres' ? 'select pg_sleep(60)' : 'select sleep(60)')
      .catch(() => undefined);
    await eventually(isAtWork);
    await ask(type === 'postgres' ? `select pg_cancel_backend(${id})` : `kill query ${id}`);
    await statement;
    await eventually(async () => !(await isAtWork()));
    await runner.release();
    await dataSource.destroy();
    await eventually(async () => !(await isAtWork()));
  });
});
