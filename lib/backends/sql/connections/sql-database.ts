import type { SqlDialect } from '../dialect/sql-dialect.js';
import type { Query } from './query.js';
import type { Sockets } from './sockets.js';

/** A database, and how a driver opens connections to it. */
export interface SqlDatabase extends TableContext {
  /** The name of the backend, such as `typeorm:postgres` or `postgres`. */
  readonly name: string;
  /** Default of the option `connectTimeoutMs`. */
  readonly connectTimeoutMs: number;
  /** Minimum milliseconds for the opening of a connection, for a database that has to start first. */
  readonly startTimeoutMs?: number;
  /** Makes a connection for statements of the locks, which is not open yet. */
  readonly createConnection: (sockets: Sockets) => DriverConnection;
  /** Makes a connection for transactions of holders, which is not open yet. Absent where no rows can be locked. */
  readonly createTransactionConnection?: (sockets: Sockets) => TransactionConnection;
}

/** The part of a database that the names of tables, and the advice about them, depend on. */
export interface TableContext {
  readonly dialect: SqlDialect;
  /** The schema of a table whose name has none. `undefined`: the database's own search path decides. */
  readonly schema: string | undefined;
  /** Tells a person how to create the tables, as the beginning of a sentence. */
  readonly creationAdvice: string;
  /** Shows a person the factory with the option that creates the table of the locks. */
  readonly synchronizeExample: string;
}

/** One connection of a driver. */
export interface DriverConnection {
  /** Opens the connection. Resolves to the driver's own object for it. Rejects with the driver's error. */
  connect(): Promise<unknown>;
  readonly query: Query;
  /** Ends the connection in good order, also while it is being opened. Does nothing when it has ended. */
  end(): Promise<void>;
}

/** Runs each statement of a transaction. It can put the statements in order and see their failures. */
export type StatementRunner = <T>(statement: () => Promise<T>) => Promise<T>;

/** One connection of a driver that serves one transaction after the other. */
export interface TransactionConnection extends DriverConnection {
  /** @param runStatement runs all statements of the transaction but those of `sendDirectly` */
  createTransaction(runStatement: StatementRunner): Promise<DriverTransaction>;
}

/** A transaction on a connection that serves nobody else meanwhile. */
export interface DriverTransaction {
  /** The driver's own object for the connection. */
  readonly client: unknown;
  /** The object that the holder writes through. It refuses to work after `release`. */
  readonly attachment: object;
  /** Whether `begin` has succeeded, and neither `commit` nor `rollback` has. */
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
