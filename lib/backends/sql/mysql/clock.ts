export const NOW = 'utc_timestamp(6)';

export const usSince1970 = (time: string): string => `timestampdiff(microsecond, '1970-01-01', ${time})`;

/** For fencing tokens. */
export const NOW_US = usSince1970(NOW);

/** Its parameter is in microseconds. */
export const IN_US = `${NOW} + interval ? microsecond`;
