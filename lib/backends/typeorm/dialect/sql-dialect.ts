import type { DataSourceOptions, EntityManager } from 'typeorm';
import type { HolderMetadata, LeaseAttempt } from '../../../core/index.js';
import type { DatabaseError } from '../connections/database-error.js';
import type { Sockets } from '../connections/sockets.js';

/**
 * One statement on the backend's own connection, outside of every transaction. Values are parameters, never text. Where
 * the driver answers with counters instead of rows, these are the only row.
 */
export type Query = (sql: string, parameters: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>;

/** The statements on a row of the lease strategy. Each compares owners and reads the database's clock. */
export interface LeaseStatements {
  tryAcquire(query: Query, table: string, lease: LeaseRow): Promise<LeaseAttempt>;
  renew(query: Query, table: string, lease: Omit<LeaseRow, 'metadata'>): Promise<boolean>;
  release(query: Query, table: string, lease: Pick<LeaseRow, 'key' | 'owner'>): Promise<boolean>;
  /** Changes nothing. */
  isHeldBy(query: Query, table: string, lease: Pick<LeaseRow, 'key' | 'owner'>): Promise<boolean>;
  /** Deletes rows that were free for longer. Their keys' tokens go on growing, by the clock. */
  reap(query: Query, table: string, idleMs: number): Promise<void>;
}

/** A database as the locks see it. */
export interface SqlDialect extends LeaseStatements {
  /** How many connections make sense for the locks alone. */
  readonly connections: number;
  /** The application's options, changed to one connection for locks, to the server that takes writes. */
  connection(options: DataSourceOptions, sockets: Sockets): DataSourceOptions;
  /**
   * Readies a connection for its first statement; `client` is the driver's own. Resolves to whether the session is ours
   * for as long as the connection, so that `runPrepared` may leave something in it.
   */
  prepare(query: Query, requestTimeoutMs: number, client: unknown): Promise<boolean>;
  quote(name: string): string;
  /** The columns of the lock table, and what `describe` says of their types. */
  readonly lockColumns: Readonly<Record<string, RegExp>>;
  readonly fenceColumns: Readonly<Record<string, RegExp>>;
  /** The `name` and `type` of each column of a table. */
  describe(query: Query, table: string): ReturnType<Query>;
  /** For servers on which a user with many rights may write to a replica, where no other process would see the lock. */
  assertPrimary?(query: Query): Promise<void>;
  /**
   * Why a crash could make the server forget what it has confirmed, and what to change; `undefined` when it could not.
   */
  forgets?(query: Query): Promise<string | undefined>;
  createLockTable(table: string): string;
  createFenceTable(table: string): string;
  /** Raises the resource's fence to `token`; false when a newer token was there. */
  raiseFence(query: Query, table: string, resource: string, token: bigint): Promise<boolean>;
  newestFence(query: Query, table: string, resource: string): Promise<bigint | undefined>;
  /** Runs before the first write of a transaction of the application. */
  lockForWriting?(manager: EntityManager, table: string): Promise<void>;
  /** Runs one statement where TypeORM's way of doing so is not safe. */
  runAlone?(client: unknown, sql: string, values: readonly unknown[]): Awaited<ReturnType<Query>>;
  /** Runs one statement whose plan the session keeps. */
  runPrepared?(client: unknown, sql: string, values: readonly unknown[]): ReturnType<Query>;
  /** Whether the database was only too busy for this statement, which did nothing and may be sent again. */
  isBusy(error: DatabaseError): boolean;
  /** Whether the table is missing, of another shape, or forbidden to us. */
  isAboutTable(error: DatabaseError): boolean;
  /** Where the server can push. */
  readonly line?: WaitingLine;
}

/**
 * Those who wait for a row's key, on the row: a release hands it to the first of them, who has it for a moment and
 * confirms by asking. Messages are those of `WakeUps`.
 */
export interface WaitingLine {
  /**
   * Puts the owner at the end, or notes that it is still there. A key that is free goes to the first who was seen of
   * late. Resolves to how many milliseconds the present holder may keep the key: 0 when it is the owner's turn to ask.
   */
  join(query: Query, table: string, key: string, owner: string): Promise<number>;
  /** The owner's name in messages. An owner's id is a secret, and anybody who may connect hears messages. */
  nameOf(owner: string): string;
  /** Notes that they wait. Resolves to the messages that they missed: their turn, or their lost place. */
  look(query: Query, table: string, keys: ReadonlyMap<string, string>): Promise<readonly string[]>;
  /** From now on calls `deliver` with the messages of the connection; false where none would ever arrive. */
  listen(query: Query, client: unknown, table: string, deliver: (message: string) => void): Promise<boolean>;
}

export interface LeaseRow {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly metadata: HolderMetadata;
}
