import { OwnConnection } from '../backends/sql/connections/own-connection.js';
import type { SqlDatabase } from '../backends/sql/connections/sql-database.js';
import type { Query } from '../backends/sql/connections/query.js';
import {
  checkFenceTable,
  createTable,
  DEFAULT_FENCE_TABLE,
  DEFAULT_LOCK_TABLE,
  lockTable,
} from '../backends/sql/tables/lock-table.js';
import { quotedTable } from '../backends/sql/tables/table-name.js';
import { tableStatements } from '../backends/sql/tables/table-statements.js';
import { LockConfigurationError } from '../core/index.js';
import { openDatabase } from './places.js';
import type { CommandOptions, Report } from './report.js';

const REQUEST_TIMEOUT_MS = 10_000;

/** The command `sql`. */
export async function printStatements(options: CommandOptions): Promise<Report> {
  const statements = statementsFor(options, options.database ?? '');
  return { isGood: true, lines: statements.map((statement) => `${statement};`), data: statements };
}

/** The command `migrate`. @throws LockConfigurationError for a table that is there, and not one of ours */
export async function createTables(options: CommandOptions): Promise<Report> {
  await withConnection(options, async (query, database) => {
    const { lock, fence } = tablesOf(options, database);
    const failures: unknown[] = [];
    for (const statement of [
      createTable(database.dialect, lock, 'lock'),
      createTable(database.dialect, fence, 'fence'),
    ]) {
      await query(statement, []).catch((error: unknown) => failures.push(error));
    }
    // Another process may create them at the same time, or this user may not where they are there already.
    await check(options, query, database).catch((error: unknown) => {
      throw failures[0] ?? error;
    });
  });
  return { isGood: true, lines: ['the tables are there'], data: { tables: 'there' } };
}

/** Makes sure that both tables are there. @throws LockConfigurationError saying what is wrong with one */
export async function checkTables(options: CommandOptions): Promise<void> {
  await withConnection(options, (query, database) => check(options, query, database));
}

async function check(options: CommandOptions, query: Query, database: SqlDatabase): Promise<void> {
  const { table } = options;
  await lockTable(database, table === undefined ? {} : { tableName: table }).check(query);
  await checkFenceTable(query, database, tablesOf(options, database).fence);
}

function tablesOf({ table, fence }: CommandOptions, database: SqlDatabase): Record<'lock' | 'fence', string> {
  return {
    lock: quotedTable(database, table ?? DEFAULT_LOCK_TABLE),
    fence: quotedTable(database, fence ?? DEFAULT_FENCE_TABLE),
  };
}

function statementsFor({ table, fence }: CommandOptions, database: string): string[] {
  if (database !== 'postgres' && database !== 'mysql' && database !== 'sqlite') {
    throw new LockConfigurationError('--database is postgres, mysql (also for MariaDB) or sqlite', 'database');
  }
  return tableStatements(database, {
    ...(table !== undefined && { lock: table }),
    ...(fence !== undefined && { fence }),
  });
}

async function withConnection(
  options: CommandOptions,
  work: (query: Query, database: SqlDatabase) => Promise<void>,
): Promise<void> {
  const database = await openDatabase(options);
  const { connectTimeoutMs } = database;
  const onOpen = (): Promise<void> => Promise.resolve();
  const settings = { database, connectTimeoutMs, requestTimeoutMs: REQUEST_TIMEOUT_MS, onOpen };
  const connection = new OwnConnection(settings, () => undefined);
  await connection.open();
  try {
    await work(connection.run, database);
  } finally {
    await connection.close();
  }
}
