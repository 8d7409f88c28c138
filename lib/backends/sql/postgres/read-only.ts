/** Condition for a read-only server. Also true in a transaction that began earlier and may therefore still write. */
export const IS_READ_ONLY_SQL = `(pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on')`;
