/**
 * `read_only` is a number, on newer servers of MariaDB a word such as `OFF`. A reader of Aurora sets only
 * `innodb_read_only`.
 */
export const READ_ONLY_CONDITION = `(cast(@@global.read_only as char) not in ('0', 'OFF') or @@global.innodb_read_only)`;
