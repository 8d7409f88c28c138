/**
 * `read_only` is a number, or a word such as `OFF` on newer MariaDB servers. Read replicas of Aurora set only
 * `innodb_read_only`.
 */
export const READ_ONLY_CONDITION = `(cast(@@global.read_only as char) not in ('0', 'OFF') or @@global.innodb_read_only)`;
