/** Unlike `now()` it goes on inside a transaction, and while a statement waits for a lock. */
export const NOW = 'clock_timestamp()';

export const NOW_MS = `floor(extract(epoch from ${NOW}) * 1000)::bigint`;

/** For fencing tokens. */
export const NOW_US = `floor(extract(epoch from ${NOW}) * 1000000)::bigint`;

export const inMs = (parameter: string): string => `${NOW} + ${parameter}::double precision * interval '1 millisecond'`;
