import { OwnConnection } from '../backends/sql/connections/own-connection.js';
import type { SqlDatabase } from '../backends/sql/connections/sql-database.js';
import type { Query } from '../backends/sql/connections/query.js';
import {
  checkFenceTable,
  createTableSql,
  DEFAULT_FENCE_TABLE,
  DEFAULT_LOCK_TABLE,
  resolveLockTable,
} from '../backends/sql/tables/lock-table.js';
import { doubleQuote, quoteTable } from '../backends/sql/tables/table-name.js';
import { tableStatements } from '../backends/sql/tables/table-statements.js';
import { errorText, LockConfigurationError } from '../core/index.js';
import { loadSqlDatabase } from './open-by-url.js';
import type { CommandOptions, Report } from './report.js';

const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Checks the table names in the options before a connection is opened.
 * @param databaseOrUrl the name of the database or its URL
 * @throws LockConfigurationError that names the option of the command
 */
export function assertTableNames(options: CommandOptions, databaseOrUrl = ''): void {
  const dialect = { quote: doubleQuote, hasSchemas: !databaseOrUrl.startsWith('sqlite') };
  for (const option of ['table', 'fence'] as const) {
    const name = options[option];
    try {
      if (name !== undefined) quoteTable({ dialect, schema: undefined }, name);
    } catch (error) {
      throw new LockConfigurationError(errorText(error).replace('tableName', `--${option}`), option);
    }
  }
}

export async function reportTableStatements(options: CommandOptions): Promise<Report> {
  const statements = getTableStatements(options, options.database ?? '');
  return { hasSucceeded: true, lines: statements.map((statement) => `${statement};`), data: statements };
}

/** @throws LockConfigurationError when an existing table has other columns */
export async function createTables(options: CommandOptions): Promise<Report> {
  await withConnection(options, async (query, database) => {
    const { lock, fence } = quoteTableNames(options, database);
    const failures: unknown[] = [];
    for (const statement of [
      createTableSql(database.dialect, lock, 'lock'),
      createTableSql(database.dialect, fence, 'fence'),
    ]) {
      await query(statement, []).catch((error: unknown) => failures.push(error));
    }
    // A failure does not matter when both tables exist. Another process may have created them, or this user may not
    // create tables.
    await checkBothTables(options, query, database).catch((error: unknown) => {
      throw failures[0] ?? error;
    });
  });
  return { hasSucceeded: true, lines: ['the tables are there'], data: { tables: 'there' } };
}

/** @throws LockConfigurationError that tells what is wrong with a table */
export async function checkTables(options: CommandOptions): Promise<void> {
  await withConnection(options, (query, database) => checkBothTables(options, query, database));
}

async function checkBothTables(options: CommandOptions, query: Query, database: SqlDatabase): Promise<void> {
  const { table } = options;
  await resolveLockTable(database, table === undefined ? {} : { tableName: table }).ensureTableUsable(query);
  await checkFenceTable(query, database, quoteTableNames(options, database).fence);
}

function quoteTableNames({ table, fence }: CommandOptions, database: SqlDatabase): Record<'lock' | 'fence', string> {
  return {
    lock: quoteTable(database, table ?? DEFAULT_LOCK_TABLE),
    fence: quoteTable(database, fence ?? DEFAULT_FENCE_TABLE),
  };
}

function getTableStatements({ table, fence }: CommandOptions, database: string): string[] {
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
  useConnection: (query: Query, database: SqlDatabase) => Promise<void>,
): Promise<void> {
  const database = await loadSqlDatabase(options);
  const { connectTimeoutMs } = database;
  const onOpen = (): Promise<void> => Promise.resolve();
  const settings = { database, connectTimeoutMs, requestTimeoutMs: REQUEST_TIMEOUT_MS, onOpen };
  const connection = new OwnConnection(settings, () => undefined);
  await connection.open();
  try {
    await useConnection(connection.query, database);
  } finally {
    await connection.close();
  }
}
