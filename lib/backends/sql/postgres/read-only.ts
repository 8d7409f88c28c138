/** Condition that the server is a standby, or begins transactions read-only. Earlier transactions may still write. */
export const READ_ONLY_CONDITION = `(pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on')`;
