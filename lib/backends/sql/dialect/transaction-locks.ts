import type { Query } from '../connections/query.js';

export interface TransactionLocks {
  /**
   * Waits for the key. Resolves to false when somebody else still has it after `waitMs`.
   * @param table the table of the fences, whose rows are locked where the database has no other locks of transactions
   * @param waitMs 0 asks once, and Infinity waits as long as the database allows
   * @throws LockConfigurationError for a transaction whose reads would show the state before the wait; database errors
   */
  lock(query: Query, table: string, key: string, waitMs: number): Promise<boolean>;
}
