/** Returns a query for the `pid` of the session that has both locks. `pg_locks` shows all locks as of one moment. */
export function selectSessionWithBothLocksSql(lockSql: string, ownerLockSql: string): string {
  return `select pid from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
     and database = (select oid from pg_database where datname = current_database())
     and ((classid::bigint << 32) | objid::bigint) in (${lockSql}, ${ownerLockSql})
   group by pid having count(*) = 2`;
}
