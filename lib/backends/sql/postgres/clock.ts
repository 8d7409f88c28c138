/** The server's clock. Unlike `now()`, it advances within a transaction, and while a statement waits for a lock. */
export const NOW_SQL = 'clock_timestamp()';

export const NOW_MILLISECONDS_SQL = `floor(extract(epoch from ${NOW_SQL}) * 1000)::bigint`;

export const NOW_MICROSECONDS_SQL = `floor(extract(epoch from ${NOW_SQL}) * 1000000)::bigint`;

export const millisecondsFromNowSql = (parameter: string): string =>
  `${NOW_SQL} + ${parameter}::double precision * interval '1 millisecond'`;
