/** Newer servers of MariaDB return a word instead of a number. A reader of Aurora has `innodb_read_only` alone. */
export const READ_ONLY_CONDITION = `(cast(@@global.read_only as char) not in ('0', 'OFF') or @@global.innodb_read_only)`;
