/**
 * `read_only` is a number, or a word such as `OFF` on newer MariaDB servers. Read replicas of Aurora set only
 * `innodb_read_only`.
 */
export const IS_READ_ONLY_SQL = `(cast(@@global.read_only as char) not in ('0', 'OFF') or @@global.innodb_read_only)`;
