export const NOW = 'utc_timestamp(6)';

export const microsecondsSince1970Sql = (time: string): string => `timestampdiff(microsecond, '1970-01-01', ${time})`;

/** The server's clock in microseconds since 1970, for fencing tokens. */
export const NOW_MICROSECONDS = microsecondsSince1970Sql(NOW);

/** Time that lies a number of microseconds ahead. The number is the parameter of the statement. */
export const MICROSECONDS_FROM_NOW_SQL = `${NOW} + interval ? microsecond`;
