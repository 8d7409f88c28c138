export const NOW_SQL = 'utc_timestamp(6)';

export const microsecondsSince1970Sql = (time: string): string => `timestampdiff(microsecond, '1970-01-01', ${time})`;

export const NOW_MICROSECONDS_SQL = microsecondsSince1970Sql(NOW_SQL);

export const MICROSECONDS_FROM_NOW_SQL = `${NOW_SQL} + interval ? microsecond`;
