import { type BackendFactory, LockConfigurationError } from '../../core/index.js';
import { DatabaseError } from '../sql/connections/database-error.js';
import type { Query } from '../sql/connections/query.js';
import type { DriverConnection, SqlDatabase } from '../sql/connections/sql-database.js';
import { sqliteDialect } from '../sql/sqlite/dialect.js';
import { isInMemory, runInWriteTransaction, type SqliteDatabase } from '../sql/sqlite/driver.js';
import { type LeaseStrategy, createSqlBackend } from '../sql/strategies.js';
import { openDatabase, type SqliteDriver } from './open-database.js';

export interface SqliteOptions extends LeaseStrategy {
  /** The path of the database's file. A missing file is created. The file may be the application's own. */
  file: string;
  /**
   * The class of the driver: what `better-sqlite3` or `libsql` exports.
   * Give the class that the application itself opens the file with: two copies of SQLite in one process do not see each
   * other's locks.
   * @default the package `better-sqlite3` where it is installed, else `node:sqlite`
   */
  driver?: SqliteDriver;
}

/**
 * Locks in a SQLite file that several processes of one host share. The table and keys are those of `typeorm()`, so that
 * services of both kinds exclude each other. The file must not be on a network file system.
 * @throws LockConfigurationError for options that can never work. The first request rejects with one where no driver is
 *   there
 */
export function sqlite(options: SqliteOptions): BackendFactory {
  return createSqlBackend(sqliteDatabase(options), options, ['file', 'driver']);
}

/** @throws LockConfigurationError for options that can never work */
export function sqliteDatabase({ file, driver }: Pick<SqliteOptions, 'file' | 'driver'>): SqlDatabase {
  if (typeof file !== 'string' || isInMemory(file)) {
    throw new LockConfigurationError(
      'file must be the path of a SQLite file, since a database in memory belongs to one connection; for one process ' +
        'there is memory()',
      'file',
    );
  }
  return {
    name: 'sqlite',
    dialect: sqliteDialect,
    schema: undefined,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    creationAdvice: 'Run npx nestjs-distributed-lock migrate',
    synchronizeExample: 'sqlite({ file, synchronize: true })',
    createConnection: () => new SqliteConnection(file, driver),
  };
}

const CONNECT_TIMEOUT_MS = 2_000;

class SqliteConnection implements DriverConnection {
  #database: SqliteDatabase | undefined;
  #hasEnded = false;

  constructor(
    private readonly file: string,
    private readonly driver: SqliteDriver | undefined,
  ) {}

  async connect(): Promise<SqliteDatabase> {
    const database = await openDatabase(this.file, this.driver);
    this.#database = database;
    // In WAL mode, readers and one writer do not block each other.
    if (!this.#hasEnded) database.exec('pragma journal_mode = wal');
    else database.close();
    return database;
  }

  readonly query: Query = async (sql, parameters) => {
    if (!this.#database) throw new DatabaseError('the connection is not open', undefined);
    return runInWriteTransaction(this.#database, sql, parameters);
  };

  async end(): Promise<void> {
    const isOpen = this.#database !== undefined && !this.#hasEnded;
    this.#hasEnded = true;
    if (isOpen) this.#database?.close();
  }
}
