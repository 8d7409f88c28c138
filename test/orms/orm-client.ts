import type { SqlTransaction } from 'nestjs-distributed-lock/sql';

/** A transaction that the client has begun. */
export interface Work {
  readonly tx: SqlTransaction;
  /** By the client's own means. */
  readonly write: (note: string) => Promise<void>;
  readonly read: () => Promise<string[]>;
  /** A transaction within this one, or a savepoint; absent where the client has none. */
  readonly nest?: (work: (inner: Work) => Promise<void>) => Promise<void>;
}

/** A client with its pool. */
export interface Client {
  transaction(work: (session: Work) => Promise<void>, options?: { repeatableRead: boolean }): Promise<void>;
  /** The object of somebody who forgot to begin a transaction. */
  outside(): SqlTransaction;
  end(): Promise<void>;
}
