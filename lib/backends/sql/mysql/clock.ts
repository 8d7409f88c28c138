export const NOW = 'utc_timestamp(6)';

export const microsecondsSince1970Sql = (time: string): string => `timestampdiff(microsecond, '1970-01-01', ${time})`;

export const NOW_MICROSECONDS = microsecondsSince1970Sql(NOW);

export const MICROSECONDS_FROM_NOW_SQL = `${NOW} + interval ? microsecond`;
