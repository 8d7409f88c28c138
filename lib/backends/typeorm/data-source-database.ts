import { DataSource, type DataSourceOptions, EntityManager, type QueryRunner } from 'typeorm';
import { type Query, queryOn } from '../sql/connections/query.js';
import { Sockets } from '../sql/connections/sockets.js';
import type {
  Around,
  DriverConnection,
  DriverTransaction,
  SqlDatabase,
  TransactionConnection,
} from '../sql/connections/sql-database.js';
import { defaultConnectTimeoutMs } from './connect-timeout.js';
import { makeDataSource } from './data-source.js';
import { tableHomeOf } from './databases.js';
import { ownOptions } from './own-options.js';
import { loggerOfOthers, SILENT_LOGGER } from './silent-logger.js';

/**
 * Makes the database of an application's data source. Its connections are made like the application's.
 * @throws LockConfigurationError for options that can never work
 */
export function dataSourceDatabase(options: DataSourceOptions): SqlDatabase {
  const home = tableHomeOf(options);
  ownOptions(options, new Sockets(() => undefined));
  return {
    ...home,
    name: `typeorm:${options.type}`,
    connectTimeoutMs: defaultConnectTimeoutMs(options),
    connection: (sockets) => new LocksConnection(ownOptions(options, sockets)),
    transactions: (sockets) => new HoldersConnection(ownOptions(options, sockets)),
  };
}

/** Nothing of the application's takes part in the statements of the locks. 0: no statement is logged as a slow one. */
const LOCKS_ONLY = { entities: [], subscribers: [], logging: false, maxQueryExecutionTime: 0, logger: SILENT_LOGGER };

/** A connection for the statements of the locks alone. */
class LocksConnection implements DriverConnection {
  readonly #dataSource: DataSource;
  #runner: QueryRunner | undefined;
  /** Settles when the runner has its connection, or gets none. */
  #connecting: Promise<unknown> = Promise.resolve();
  #hasEnded = false;

  constructor(options: DataSourceOptions) {
    this.#dataSource = makeDataSource(options, LOCKS_ONLY);
  }

  async connect(): Promise<unknown> {
    await this.#dataSource.initialize();
    this.#runner = this.#dataSource.createQueryRunner('master');
    const connecting: Promise<unknown> = this.#runner.connect();
    this.#connecting = connecting.catch(() => undefined);
    const client = await connecting;
    if (this.#hasEnded) await this.end();
    return client;
  }

  readonly query: Query = (sql, parameters) => queryOn(this.#runner ?? this.#dataSource)(sql, parameters);

  /** A runner that is released while it connects would keep its connection, and the pool could never end. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#connecting;
    await this.#runner?.release();
    if (this.#dataSource.isInitialized) await this.#dataSource.destroy();
  }
}

/** A connection with the application's entities, for the transactions of holders. */
class HoldersConnection implements TransactionConnection {
  readonly #dataSource: DataSource;
  #hasEnded = false;

  constructor(options: DataSourceOptions) {
    this.#dataSource = makeDataSource(options);
    this.#dataSource.logger = loggerOfOthers(this.#dataSource.logger);
  }

  async connect(): Promise<void> {
    await this.#dataSource.initialize();
    if (this.#hasEnded) await this.end();
  }

  readonly query: Query = (sql, parameters) => queryOn(this.#dataSource)(sql, parameters);

  async lend(around: Around): Promise<DriverTransaction> {
    const runner = this.#dataSource.createQueryRunner('master');
    const client: unknown = await runner.connect();
    return new RunnerTransaction(runner, client, around);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    if (this.#dataSource.isInitialized) await this.#dataSource.destroy();
  }
}

class RunnerTransaction implements DriverTransaction {
  readonly query: Query;
  readonly send: Query;

  constructor(
    private readonly runner: QueryRunner,
    readonly client: unknown,
    around: Around,
  ) {
    const direct = runner.query.bind(runner);
    const query = (...args: Parameters<typeof direct>): Promise<unknown> => around(() => direct(...args));
    Object.defineProperty(runner, 'query', { value: query, configurable: true });
    this.query = queryOn(runner);
    this.send = queryOn({ query: direct });
  }

  get attachment(): EntityManager {
    return this.runner.manager;
  }

  get isActive(): boolean {
    return this.runner.isTransactionActive;
  }

  begin(): Promise<void> {
    return this.runner.startTransaction('READ COMMITTED');
  }

  commit(): Promise<void> {
    return this.runner.commitTransaction();
  }

  rollback(): Promise<void> {
    return this.runner.rollbackTransaction();
  }

  release(): Promise<void> {
    return this.runner.release();
  }
}
