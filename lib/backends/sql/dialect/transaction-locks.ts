import type { Query } from '../connections/query.js';

export interface TransactionLocks {
  /**
   * Waits for the key. Resolves to false when somebody else still has it after `waitMs`.
   * @param table the fence table, whose rows are locked on databases that have no other locks for transactions
   * @param waitMs 0 asks once, and Infinity waits as long as the database allows
   * @throws database errors, and LockConfigurationError for a transaction whose reads would show the state before the
   *   wait
   */
  lock(query: Query, table: string, key: string, waitMs: number): Promise<boolean>;
}
