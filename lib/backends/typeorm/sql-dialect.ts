import type { DataSourceOptions } from 'typeorm';
import { type HolderMetadata, type LeaseAttempt, LockConfigurationError } from '../../core/index.js';
import { sqlite } from './sqlite-dialect.js';

/** One statement on the backend's own connection, outside of every transaction. Values are parameters, never text. */
export type Query = (sql: string, parameters: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>;

/** A database as the lease strategy sees it: every statement compares owners and reads the database's clock. */
export interface SqlDialect {
  /** The application's options, changed where a lock needs a connection of another kind. */
  connection(options: DataSourceOptions): DataSourceOptions;
  /** What the connection needs before its first statement. */
  prepare(query: Query): Promise<void>;
  createLockTable(table: string): string;
  createFenceTable(table: string): string;
  tryAcquire(query: Query, table: string, lease: LeaseRow): Promise<LeaseAttempt>;
  renew(query: Query, table: string, lease: Omit<LeaseRow, 'metadata'>): Promise<boolean>;
  release(query: Query, table: string, lease: Pick<LeaseRow, 'key' | 'owner'>): Promise<boolean>;
  /** Raises the resource's fence to `token`; false when a newer token was there. */
  raiseFence(query: Query, table: string, resource: string, token: bigint): Promise<boolean>;
  newestFence(query: Query, table: string, resource: string): Promise<bigint | undefined>;
  /** Whether the database was only too busy for this statement, which did nothing and may be sent again. */
  isBusy(error: unknown): boolean;
}

export interface LeaseRow {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly metadata: HolderMetadata;
}

const DIALECTS: ReadonlyMap<string, SqlDialect> = new Map([['better-sqlite3', sqlite]]);

/** @throws LockConfigurationError for a database that has no dialect */
export function dialectOf(type: string): SqlDialect {
  const dialect = DIALECTS.get(type);
  if (dialect) return dialect;
  throw new LockConfigurationError(
    `typeorm() has no dialect for data sources of type "${type}"; it has ${[...DIALECTS.keys()].join(', ')}`,
    'dataSource',
  );
}

/** Table names cannot be parameters, so they are checked instead. */
export function assertTableName(option: string, name: unknown): asserts name is string {
  if (typeof name === 'string' && /^[A-Za-z_][\w$]{0,62}$/u.test(name)) return;
  throw new LockConfigurationError(
    `${option} must be a plain identifier (letters, digits, "_", at most 63), because it becomes part of statements; it was ${JSON.stringify(name)}`,
    option,
  );
}
