/** Newer servers of MariaDB return a word instead of a number. */
export const READ_ONLY_CONDITION = `cast(@@global.read_only as char) not in ('0', 'OFF')`;
