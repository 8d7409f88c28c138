import { DataSource, type QueryRunner } from 'typeorm';
import { createQuery } from '../../../lib/backends/sql/connections/query.js';
import { UnansweredSessions } from '../../../lib/backends/sql/connections/unanswered-sessions.js';
import { mysqlServerSessions } from '../../../lib/backends/sql/mysql/server-sessions.js';
import { postgresServerSessions } from '../../../lib/backends/sql/postgres/server-sessions.js';
import { eventually } from '../../support/eventually.js';
import { describeWanted } from '../../support/wanted-backends.js';
import { SqlWorld } from './sql-world.js';

describeWanted(['postgres', 'mariadb'], 'the sessions of a server, %s', (type) => {
  const world = new SqlWorld(type);
  const serverSessions = type === 'postgres' ? postgresServerSessions : mysqlServerSessions;
  let dataSource: DataSource;
  beforeAll(async () => {
    await world.start();
    dataSource = await new DataSource({ type, url: world.url, poolSize: 2 }).initialize();
  });
  afterAll(async () => {
    await dataSource.destroy();
    await world.stop();
  });

  const ask = (sql: string, parameters: unknown[] = []): Promise<unknown> => world.harness.ask(sql, parameters);

  /** A statement that takes a minute, unless it is ended. */
  const startStatement = (runner: QueryRunner): { readonly answer: Promise<unknown>; end(): Promise<void> } => {
    const sleep = runner.query(type === 'postgres' ? 'select pg_sleep(60)' : 'select sleep(60)');
    const answer = sleep.catch(() => undefined);
    return {
      answer,
      async end() {
        const id = serverSessions.getSessionId(await runner.connect());
        await ask(type === 'postgres' ? `select pg_cancel_backend(${id})` : `kill query ${id}`);
        await answer;
      },
    };
  };

  it('are at work during a statement, and not between two or after their end', async () => {
    const runner = dataSource.createQueryRunner();
    const id = serverSessions.getSessionId(await runner.connect()) ?? '';
    const isAtWork = (): Promise<boolean> =>
      serverSessions.isAnySessionWorking(createQuery({ query: ask }), [id, '2147483647'], 0);
    expect(await isAtWork()).toBe(false);
    const statement = startStatement(runner);
    await eventually(isAtWork);
    await statement.end();
    await eventually(async () => !(await isAtWork()));
    await runner.release();
  });

  it('are others of the same ids when the server was restarted: the one that asks', async () => {
    const runner = dataSource.createQueryRunner();
    const sessions = new UnansweredSessions(serverSessions, createQuery(runner));
    sessions.rememberSession('k', await idOf(runner));
    await sessions.assertNoSessionWorking('k');
    await runner.release();
  });

  it('are others of the same ids when the server was restarted: one whose statement began later', async () => {
    const [cut, asking] = [dataSource.createQueryRunner(), dataSource.createQueryRunner()];
    const sessions = new UnansweredSessions(serverSessions, createQuery(asking));
    const early = startStatement(cut);
    await eventually(async () => await serverSessions.isAnySessionWorking(createQuery(asking), [await idOf(cut)], 0));
    sessions.rememberSession('k', await idOf(cut));
    await expect(sessions.assertNoSessionWorking('k')).rejects.toThrow('still has the key');
    await early.end();
    await new Promise((resolve) => setTimeout(resolve, 2_100));
    const late = startStatement(cut);
    await eventually(async () => await serverSessions.isAnySessionWorking(createQuery(asking), [await idOf(cut)], 0));
    await sessions.assertNoSessionWorking('k');
    await late.end();
    await Promise.all([cut.release(), asking.release()]);
  });

  const idOf = async (runner: QueryRunner): Promise<string> =>
    serverSessions.getSessionId(await runner.connect()) ?? '';
});
