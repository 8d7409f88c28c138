import type { SqlDialect } from '../dialect/sql-dialect.js';
import type { Query } from './query.js';
import type { Sockets } from './sockets.js';

export interface SqlDatabase extends TableContext {
  /** The name of the backend, such as `typeorm:postgres` or `postgres`. */
  readonly name: string;
  readonly connectTimeoutMs: number;
  /** Minimum time-out for opening a connection, where the database may have to start first. */
  readonly startTimeoutMs?: number;
  readonly createConnection: (sockets: Sockets) => DriverConnection;
  /** Absent where no rows can be locked. */
  readonly createTransactionConnection?: (sockets: Sockets) => TransactionConnection;
}

export interface TableContext {
  readonly dialect: SqlDialect;
  /** Schema of tables whose name has no schema. `undefined` leaves it to the database's search path. */
  readonly schema: string | undefined;
  /** Beginning of a sentence in error messages that tells how to create the tables. */
  readonly creationAdvice: string;
  /** Example of a call with `synchronize: true`, for the same messages. */
  readonly synchronizeExample: string;
}

export interface DriverConnection {
  /**
   * Resolves to the driver's own object for the connection.
   * @param timeoutMs time for all addresses of the server together
   */
  connect(timeoutMs: number): Promise<unknown>;
  readonly query: Query;
  /** May be called while the connection is being opened, and after its end. */
  end(): Promise<void>;
  /** Makes new connections try this connection's address last, because its server refuses writes. */
  tryAddressLast?(): void;
}

export type StatementRunner = <T>(statement: () => Promise<T>) => Promise<T>;

export interface TransactionConnection extends DriverConnection {
  /** @param runStatement runs all statements of the transaction, except those sent by `sendDirectly` */
  createTransaction(runStatement: StatementRunner): Promise<DriverTransaction>;
}

export interface DriverTransaction {
  readonly client: unknown;
  /** The object that the holder writes through. It refuses to work after `release`. */
  readonly attachment: object;
  readonly isActive: boolean;
  /** Begins with the isolation level READ COMMITTED. */
  begin(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  readonly query: Query;
  /** Sends a statement at once, without `runStatement`. */
  readonly sendDirectly: Query;
  release(): Promise<void>;
}
