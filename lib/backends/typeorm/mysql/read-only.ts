/** Whether the server is read-only, as replicas are. Newer servers of MariaDB answer with a word instead of a number. */
export const IS_READ_ONLY = `cast(@@global.read_only as char) not in ('0', 'OFF')`;
