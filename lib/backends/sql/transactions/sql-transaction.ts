import { errorText, LockConfigurationError } from '../../../core/index.js';
import { codesIn } from '../connections/client-error.js';
import type { Query } from '../connections/query.js';
import type { FenceStatements } from '../dialect/fence-statements.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';
import { mysqlFence } from '../mysql/fence.js';
import { mysqlTransactionLocks } from '../mysql/transaction-locks.js';
import { postgresFence } from '../postgres/fence.js';
import { postgresTransactionLocks } from '../postgres/transaction-locks.js';
import { sqliteFence } from '../sqlite/fence.js';
import { sqliteTransactionLocks } from '../sqlite/transaction-locks.js';
import { backQuoted, doubleQuoted, plainTable, quotedTable } from '../tables/table-name.js';

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
   * @param values texts, and bytes for MySQL
   */
  query(sql: string, values: readonly unknown[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Whether the transaction is under way. Without it, nobody notices that a caller has begun none. */
  isActive?(): boolean | Promise<boolean>;
}

interface Sql {
  readonly fence: FenceStatements;
  readonly locks: TransactionLocks;
  readonly home: Parameters<typeof quotedTable>[0];
}

const SQL: Readonly<Record<SqlName, Sql>> = {
  postgres: { fence: postgresFence, locks: postgresTransactionLocks, home: homeWith(doubleQuoted) },
  mysql: { fence: mysqlFence, locks: mysqlTransactionLocks, home: homeWith(backQuoted) },
  sqlite: { fence: sqliteFence, locks: sqliteTransactionLocks, home: homeWith(doubleQuoted, false) },
};

/** A transaction that was looked at, and what its database needs. */
export interface OpenTransaction extends Sql {
  readonly query: Query;
  readonly table: string;
}

/**
 * @param caller the function that needs the transaction
 * @throws LockConfigurationError for what is no transaction, and when it is not under way
 */
export async function openTransaction(caller: string, tx: SqlTransaction, tableName: string): Promise<OpenTransaction> {
  const sql = Object.hasOwn(SQL, tx?.database) ? SQL[tx.database] : undefined;
  if (!sql || typeof tx.query !== 'function') {
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
  const table = quotedTable(sql.home, tableName);
  const query: Query = async (text, values) => {
    try {
      return await tx.query(text, values);
    } catch (error) {
      throw isAboutMissingTable(error) ? missingTable(table, error) : error;
    }
  };
  return { ...sql, query, table };
}

/** By the codes of PostgreSQL, of MySQL and MariaDB, and by SQLite's words. */
function isAboutMissingTable(error: unknown): boolean {
  return codesIn(error).some((code) => MISSING_TABLE.test(code)) || /no such table/u.test(errorText(error));
}

const MISSING_TABLE = /^(42P01|ER_NO_SUCH_TABLE|1146)$/u;

function missingTable(table: string, error: unknown): LockConfigurationError {
  return new LockConfigurationError(
    `the table ${plainTable(table)} is missing, or in another schema (${errorText(error)}): run npx ` +
      'nestjs-distributed-lock migrate, or give its tableName',
    'tableName',
  );
}

function homeWith(quote: (name: string) => string, hasSchemas = true): Sql['home'] {
  return { dialect: { quote, hasSchemas }, schema: undefined };
}
