import { errorText, LockConfigurationError } from '../../../core/index.js';
import { findErrorCodes } from '../connections/client-error.js';
import type { Query } from '../connections/query.js';
import type { FenceStatements } from '../dialect/fence-statements.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';
import { mysqlFence } from '../mysql/fence.js';
import { mysqlTransactionLocks } from '../mysql/transaction-locks.js';
import { postgresFence } from '../postgres/fence.js';
import { postgresTransactionLocks } from '../postgres/transaction-locks.js';
import { sqliteFence } from '../sqlite/fence.js';
import { sqliteTransactionLocks } from '../sqlite/transaction-locks.js';
import { backQuote, doubleQuote, unquoteTable, quoteTable } from '../tables/table-name.js';

/** A database by the SQL that it speaks. MariaDB speaks that of MySQL. */
export type SqlName = 'postgres' | 'mysql' | 'sqlite';

/**
 * A transaction that the application has begun. The functions `fromPg`, `fromPrisma` and so on make one; with another
 * client, write the object yourself.
 */
export interface SqlTransaction {
  readonly database: SqlName;
  /**
   * Runs one statement in the transaction, and resolves to its rows.
   * @param sql has the placeholders `$1`, `$2` and so on for PostgreSQL, and `?` for the others
   * @param values texts; on MySQL also `Buffer`s
   */
  query(sql: string, values: readonly unknown[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Whether the transaction is under way. If it is absent, a caller without a transaction is not noticed. */
  isActive?(): boolean | Promise<boolean>;
}

interface SqlStatements {
  readonly fence: FenceStatements;
  readonly locks: TransactionLocks;
  readonly tableNaming: Parameters<typeof quoteTable>[0];
}

const STATEMENTS_BY_DATABASE: Readonly<Record<SqlName, SqlStatements>> = {
  postgres: { fence: postgresFence, locks: postgresTransactionLocks, tableNaming: createTableNaming(doubleQuote) },
  mysql: { fence: mysqlFence, locks: mysqlTransactionLocks, tableNaming: createTableNaming(backQuote) },
  sqlite: { fence: sqliteFence, locks: sqliteTransactionLocks, tableNaming: createTableNaming(doubleQuote, false) },
};

export interface CheckedTransaction extends SqlStatements {
  readonly query: Query;
  readonly table: string;
}

/** @throws LockConfigurationError for a value that is no transaction, and for a transaction that is not under way */
export async function checkTransaction(
  caller: string,
  tx: SqlTransaction,
  tableName: string,
): Promise<CheckedTransaction> {
  const statements = Object.hasOwn(STATEMENTS_BY_DATABASE, tx?.database)
    ? STATEMENTS_BY_DATABASE[tx.database]
    : undefined;
  if (!statements || typeof tx.query !== 'function') {
    throw new LockConfigurationError(
      `${caller} needs a transaction as fromPg, fromPrisma and so on make it, of postgres, mysql or sqlite`,
      'tx',
    );
  }
  if ((await tx.isActive?.()) === false) {
    throw new LockConfigurationError(
      `${caller} needs a transaction that is under way: begin one, and roll one back that has failed`,
      'tx',
    );
  }
  const table = quoteTable(statements.tableNaming, tableName);
  const query: Query = async (text, values) => {
    try {
      return await tx.query(text, values);
    } catch (error) {
      throw isMissingTableError(error) ? createMissingTableError(table, error) : error;
    }
  };
  return { ...statements, query, table };
}

function isMissingTableError(error: unknown): boolean {
  return (
    findErrorCodes(error).some((code) => MISSING_TABLE_CODE_PATTERN.test(code)) ||
    /no such table/u.test(errorText(error))
  );
}

const MISSING_TABLE_CODE_PATTERN = /^(42P01|ER_NO_SUCH_TABLE|1146)$/u;

function createMissingTableError(table: string, error: unknown): LockConfigurationError {
  return new LockConfigurationError(
    `the table ${unquoteTable(table)} is missing, or in another schema (${errorText(error)}): run npx ` +
      'nestjs-distributed-lock migrate, or give its tableName',
    'tableName',
  );
}

function createTableNaming(quote: (name: string) => string, hasSchemas = true): SqlStatements['tableNaming'] {
  return { dialect: { quote, hasSchemas }, schema: undefined };
}
