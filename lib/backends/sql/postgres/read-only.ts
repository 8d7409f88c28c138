/** True also in a transaction that began before the server became read-only, and may still write. */
export const READ_ONLY_CONDITION = `(pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on')`;
