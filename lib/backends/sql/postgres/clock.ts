/** The server's clock. Unlike `now()`, it goes on inside a transaction, and while a statement waits for a lock. */
export const NOW = 'clock_timestamp()';

export const NOW_MILLISECONDS = `floor(extract(epoch from ${NOW}) * 1000)::bigint`;

export const NOW_MICROSECONDS = `floor(extract(epoch from ${NOW}) * 1000000)::bigint`;

export const millisecondsFromNowSql = (parameter: string): string =>
  `${NOW} + ${parameter}::double precision * interval '1 millisecond'`;
