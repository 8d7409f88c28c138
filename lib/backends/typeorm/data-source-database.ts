import { DataSource, type DataSourceOptions, EntityManager, type QueryRunner } from 'typeorm';
import { type Query, createQuery } from '../sql/connections/query.js';
import { Sockets } from '../sql/connections/sockets.js';
import type {
  StatementRunner,
  DriverConnection,
  DriverTransaction,
  SqlDatabase,
  TransactionConnection,
} from '../sql/connections/sql-database.js';
import { getDefaultConnectTimeoutMs } from './connect-timeout.js';
import { createDataSource, shareSubscribers } from './data-source.js';
import { getTableContext } from './databases.js';
import { createSingleConnectionOptions } from './own-options.js';
import { hideLockStatements, SILENT_LOGGER } from './silent-logger.js';

/**
 * @param source the application's data source. Its subscribers are told of the writes in transactions of row locks
 * @throws LockConfigurationError for options that can never work
 */
export function createDataSourceDatabase(options: DataSourceOptions, source?: DataSource): SqlDatabase {
  const tableContext = getTableContext(options);
  // Throws at once for options that can never work.
  createSingleConnectionOptions(options, new Sockets());
  return {
    ...tableContext,
    name: `typeorm:${options.type}`,
    connectTimeoutMs: getDefaultConnectTimeoutMs(options),
    createConnection: (sockets) => new LockConnection(createSingleConnectionOptions(options, sockets)),
    createTransactionConnection: (sockets) =>
      new HolderTransactionConnection(createSingleConnectionOptions(options, sockets), source),
  };
}

/** Options of data sources for the locks alone. A `maxQueryExecutionTime` of 0 logs no statement as a slow one. */
const LOCK_CONNECTION_OPTIONS = {
  entities: [],
  subscribers: [],
  logging: false,
  maxQueryExecutionTime: 0,
  logger: SILENT_LOGGER,
};

/** A connection for the library's own statements, without entities, subscribers and logs of the application. */
class LockConnection implements DriverConnection {
  readonly #dataSource: DataSource;
  #runner: QueryRunner | undefined;
  /** Promise that resolves when the runner has a connection, or has failed to get one. */
  #connectionAttempt: Promise<unknown> = Promise.resolve();
  #hasEnded = false;

  constructor(options: DataSourceOptions) {
    this.#dataSource = createDataSource(options, LOCK_CONNECTION_OPTIONS);
  }

  async connect(): Promise<unknown> {
    await this.#dataSource.initialize();
    this.#runner = this.#dataSource.createQueryRunner('master');
    const connectionAttempt: Promise<unknown> = this.#runner.connect();
    this.#connectionAttempt = connectionAttempt.catch(() => undefined);
    const client = await connectionAttempt;
    if (this.#hasEnded) await this.end();
    return client;
  }

  readonly query: Query = (sql, parameters) => createQuery(this.#runner ?? this.#dataSource)(sql, parameters);

  /**
   * Waits until the runner has its connection. A runner that is released while it connects never gives it back.
   */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#connectionAttempt;
    await this.#runner?.release();
    if (this.#dataSource.isInitialized) await this.#dataSource.destroy();
  }
}

/** A connection with the application's entities, for the transactions of holders. */
class HolderTransactionConnection implements TransactionConnection {
  readonly #dataSource: DataSource;
  #hasEnded = false;

  constructor(
    options: DataSourceOptions,
    private readonly source: DataSource | undefined,
  ) {
    this.#dataSource = createDataSource(options);
    this.#dataSource.logger = hideLockStatements(this.#dataSource.logger);
  }

  async connect(): Promise<void> {
    await this.#dataSource.initialize();
    if (this.source) shareSubscribers(this.#dataSource, this.source);
    if (this.#hasEnded) await this.end();
  }

  readonly query: Query = (sql, parameters) => createQuery(this.#dataSource)(sql, parameters);

  async createTransaction(runStatement: StatementRunner): Promise<DriverTransaction> {
    const runner = this.#dataSource.createQueryRunner('master');
    const client: unknown = await runner.connect();
    return new RunnerTransaction(runner, client, runStatement);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    if (this.#dataSource.isInitialized) await this.#dataSource.destroy();
  }
}

class RunnerTransaction implements DriverTransaction {
  readonly query: Query;
  readonly sendDirectly: Query;

  constructor(
    private readonly runner: QueryRunner,
    readonly client: unknown,
    runStatement: StatementRunner,
  ) {
    // Repositories and the manager send their statements by `query` of the runner.
    const runnerQuery = runner.query.bind(runner);
    const query = (...args: Parameters<typeof runnerQuery>): Promise<unknown> =>
      runStatement(() => runnerQuery(...args));
    Object.defineProperty(runner, 'query', { value: query, configurable: true });
    this.query = createQuery(runner);
    this.sendDirectly = createQuery({ query: runnerQuery });
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
