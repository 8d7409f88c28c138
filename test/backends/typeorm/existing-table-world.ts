import { createRequire } from 'node:module';
import { LockService, type LockServiceOptions } from 'nestjs-distributed-lock/core';
import { typeorm, type TypeOrmOptions } from 'nestjs-distributed-lock/typeorm';
import { DataSource, type DataSourceOptions, type QueryRunner } from 'typeorm';
import { type BackendHarness, eventually, World } from '../../support/index.js';
import { sqlHarness, type SqlHarness, type SqlServer } from './harness.js';
import { sqliteHarness } from './sqlite-harness.js';

export type DatabaseType = 'postgres' | 'mariadb' | 'sqlite';

const libsql: unknown = createRequire(import.meta.url)('libsql');

/** The table as its older programs know it. */
const TABLE = {
  postgres: `create table method_lock (
    id serial primary key, method_name varchar(700) not null unique, client_id varchar(64) not null,
    update_time timestamp not null default now())`,
  mariadb: `create table method_lock (
    id int not null auto_increment primary key,
    method_name varchar(700) character set utf8mb4 collate utf8mb4_nopad_bin not null, client_id varchar(64) not null,
    update_time timestamp not null default current_timestamp on update current_timestamp, unique key (method_name))`,
  sqlite: `create table method_lock (
    id integer primary key autoincrement, method_name text not null unique, client_id text not null,
    update_time text not null default current_timestamp)`,
};

const NOW = {
  postgres: 'clock_timestamp()',
  mariadb: 'utc_timestamp(6)',
  sqlite: `cast((julianday('now') - 2440587.5) * 86400000 as integer)`,
};

type Options = Partial<TypeOrmOptions> & { readonly locks?: LockServiceOptions };

/** A database with a table of locks of an older program, that program, and services on the same table. */
export class ExistingTableWorld extends World {
  readonly #base: BackendHarness;
  readonly #sql: SqlHarness | undefined;
  #program: DataSource | undefined;

  constructor(readonly type: DatabaseType) {
    super();
    this.#sql = type === 'sqlite' ? undefined : sqlHarness(type);
    this.#base = this.#sql ?? sqliteHarness();
  }

  async start(): Promise<void> {
    await this.#base.start();
    this.#program = await new DataSource(this.options).initialize();
    await this.ask(TABLE[this.type]);
  }

  async stop(): Promise<void> {
    await this.#program?.destroy();
    await this.#base.stop();
  }

  override async endTest(): Promise<void> {
    await Promise.all(this.opened.splice(0).map((service) => service.close(1_000)));
    await this.ask('delete from method_lock');
  }

  /** For faults of its own. SQLite has none. */
  server(): SqlServer {
    if (!this.#sql) throw new Error(`${this.type} has no server`);
    return this.#sql.server();
  }

  get options(): DataSourceOptions {
    const connection = this.#base.connection?.();
    if (connection?.backend === 'sqlite') {
      return { type: 'better-sqlite3', driver: libsql, database: connection.database, timeout: 1_000 };
    }
    if (connection?.backend !== 'postgres' && connection?.backend !== 'mariadb') throw new Error('no such database');
    return { type: connection.backend, url: connection.url };
  }

  async ask(sql: string, parameters: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    if (!this.#program) throw new Error('the world has not started');
    let place = 0;
    const text = this.type === 'postgres' ? sql.replaceAll('?', () => `$${(place += 1)}`) : sql;
    return this.#program.query(text, [...parameters]);
  }

  /** A transaction of an older program. SQLite has one connection for all. */
  async transaction(): Promise<QueryRunner> {
    if (!this.#program) throw new Error('the world has not started');
    const runner = this.#program.createQueryRunner();
    await runner.startTransaction();
    return runner;
  }

  /** Takes a lock as an older program does. Resolves to whether it has it now. */
  async insert(method: string, client = 'client-7'): Promise<boolean> {
    try {
      await this.ask('insert into method_lock (method_name, client_id) values (?, ?)', [method, client]);
      return true;
    } catch (error) {
      if (/duplicate|unique/iu.test(String(error))) return false;
      throw error;
    }
  }

  /** Gives it back as an older program does. */
  async delete(method: string): Promise<void> {
    // SQLite's clock counts milliseconds, and nothing remembers a token whose row is deleted in the one in which it was
    // made.
    const now = Date.now();
    await eventually(() => Date.now() > now, { everyMs: 1 });
    await this.ask('delete from method_lock where method_name = ?', [method]);
  }

  /** The owners of `method` whose row counts. */
  async ownersOf(method: string): Promise<string[]> {
    const counts = `(expires_at is null or expires_at > ${NOW[this.type]})`;
    const rows = await this.ask(`select client_id from method_lock where method_name = ? and ${counts}`, [method]);
    return rows.map((row) => String(row['client_id']));
  }

  service({ locks, ...options }: Options = {}): LockService {
    return this.closing(new LockService(this.backend(options), locks));
  }

  backend(options: Partial<TypeOrmOptions> = {}) {
    const columns = { key: 'method_name', owner: 'client_id', updatedAt: 'update_time' };
    const mine = { dataSource: { options: this.options }, tableName: 'method_lock', columns, synchronize: true };
    return typeorm(Object.assign(mine, options))();
  }

  /** The contract, in such a table. */
  get harness(): BackendHarness {
    return {
      ...this.#base,
      order: 'none',
      shares: false,
      transfers: false,
      looks: ['token', 'leftMs', 'evict', 'keys'],
      start: () => this.start(),
      stop: () => this.stop(),
      connect: async () => this.backend(),
      // The process harness knows no such table, and a server that starts empty has none.
      connection: null,
      restart: null,
      revoke: (key) => this.delete(key),
      leftovers: async (key) => ((await this.hasColumns()) ? this.ownersOf(key) : []),
      keeps: (key) => key.length <= 700 && !(this.type === 'postgres' && key.includes('\0')),
    };
  }

  private async hasColumns(): Promise<boolean> {
    return this.ask('select expires_at from method_lock').then(
      () => true,
      () => false,
    );
  }
}
