import { DataSource, type DataSourceOptions, QueryFailedError } from 'typeorm';
import { pause, systemClock } from '../../core/timers.js';
import type { Query, SqlDialect } from './sql-dialect.js';

const BUSY_PAUSE_MS = 10;

const NOTHING_OF_THE_APPLICATION = {
  entities: [],
  subscribers: [],
  migrations: [],
  synchronize: false,
  dropSchema: false,
  migrationsRun: false,
  logging: false,
  cache: false,
} satisfies Partial<DataSourceOptions>;

/**
 * A connection of the locks' own, made like the application's. On the application's, a lock could end up inside one of its
 * transactions (SQLite has a single connection for all of them), where a rollback would undo it.
 */
export class OwnConnection {
  #opening: Promise<DataSource> | undefined;
  #closed = false;

  constructor(
    private readonly options: DataSourceOptions,
    private readonly dialect: SqlDialect,
    private readonly statementTimeoutMs: number,
    /** Runs once, on the new connection, before anything else. */
    private readonly onOpen: (query: Query) => Promise<void>,
  ) {}

  /** Rejects after `statementTimeoutMs` of a busy database at the latest. Opens the connection if there is none. */
  readonly query: Query = async (sql, parameters) => {
    if (this.#closed) throw new Error('the lock connection is closed');
    this.#opening ??= this.#open();
    const dataSource = await this.#opening;
    return this.#run(dataSource, sql, parameters);
  };

  async close(): Promise<void> {
    this.#closed = true;
    const opening = this.#opening;
    this.#opening = undefined;
    const dataSource = await opening?.catch(() => undefined);
    await dataSource?.destroy();
  }

  async #open(): Promise<DataSource> {
    const dataSource = new DataSource(
      Object.assign({ ...this.dialect.connection(this.options) }, NOTHING_OF_THE_APPLICATION),
    );
    try {
      await dataSource.initialize();
      const query: Query = (sql, parameters) => this.#run(dataSource, sql, parameters);
      await this.dialect.prepare(query);
      await this.onOpen(query);
      return dataSource;
    } catch (error) {
      this.#opening = undefined;
      if (dataSource.isInitialized) await dataSource.destroy();
      throw withoutParameters(error);
    }
  }

  async #run(
    dataSource: DataSource,
    sql: string,
    parameters: readonly unknown[],
  ): Promise<readonly Record<string, unknown>[]> {
    const giveUpAt = systemClock.now() + this.statementTimeoutMs;
    for (;;) {
      try {
        const rows: unknown = await dataSource.query(sql, [...parameters]);
        return Array.isArray(rows) ? rows : [];
      } catch (error) {
        const cause = withoutParameters(error);
        if (!this.dialect.isBusy(cause) || systemClock.now() >= giveUpAt) throw cause;
        await pause(systemClock, BUSY_PAUSE_MS);
      }
    }
  }
}

/** TypeORM's error shows the statement's values, and an owner id is a secret: whoever knows it can free the lock. */
function withoutParameters(error: unknown): unknown {
  return error instanceof QueryFailedError ? error.driverError : error;
}
