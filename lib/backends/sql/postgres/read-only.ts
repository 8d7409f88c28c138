/** Whether the server is a standby, or begins transactions read-only. Transactions that began earlier still may write. */
export const IS_READ_ONLY = `(pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on')`;
