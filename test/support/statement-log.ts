import { randomUUID } from 'node:crypto';
import { sqliteStatements } from './counted-sqlite.js';
import { eventually } from './eventually.js';
import type { SqlHarness } from '../backends/typeorm/harness.js';

/** The statements of a database's clients. Its operator is not among them. */
export interface StatementLog {
  during(work: () => Promise<unknown>): Promise<readonly string[]>;
}

/** As the server itself writes it down. Whoever is to be seen connects after this. */
export async function logStatements(harness: SqlHarness): Promise<StatementLog> {
  return harness.type === 'postgres' ? logOfPostgres(harness) : logOfMariadb(harness);
}

/** The statements of this process only. */
export function logSqliteStatements(): StatementLog {
  return {
    during: async (work) => {
      const from = sqliteStatements.length;
      await work();
      return sqliteStatements.slice(from);
    },
  };
}

/** `execute` is the last step of a statement with parameters. */
const ENTRY = /\[(\d+)\] LOG: {2}(?:statement|execute [^:]*): (.*)/gu;

async function logOfPostgres({ ask, server }: SqlHarness): Promise<StatementLog> {
  await ask(`alter database postgres set log_statement = 'all'`);
  await ask(`set log_statement = 'all'`);
  const [operator] = await ask('select pg_backend_pid()::text as pid');
  const mark = async (): Promise<number> => {
    const name = randomUUID();
    await ask(`select '${name}'`);
    await eventually(() => server().output.includes(name));
    return server().output.indexOf(name);
  };
  return {
    during: async (work) => {
      const from = await mark();
      await work();
      const to = await mark();
      // Not before: what was written down last may be on its way here until then.
      const entries = server().output.slice(from, to).matchAll(ENTRY);
      return Array.from(entries, ([, pid, sql = '']) => (pid === operator?.['pid'] ? [] : [sql])).flat();
    },
  };
}

async function logOfMariadb({ ask }: SqlHarness): Promise<StatementLog> {
  await ask(`set global log_output = 'TABLE', global general_log = 1`);
  return {
    during: async (work) => {
      await ask('truncate table mysql.general_log');
      await work();
      const rows = await ask(`select cast(argument as char) as statement from mysql.general_log
        where command_type in ('Query', 'Execute') and thread_id <> connection_id()`);
      return rows.map(({ statement }) => String(statement));
    },
  };
}
