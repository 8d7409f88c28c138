const INNODB_SQL = `select trx_mysql_thread_id as id from information_schema.innodb_trx where trx_state = 'LOCK WAIT'`;

/** Selects the sessions of a server that wait for the row of another transaction. */
export const BLOCKED_SESSIONS_SQL = {
  postgres: `select pid as id from pg_stat_activity where wait_event_type = 'Lock'`,
  mariadb: INNODB_SQL,
  mysql: INNODB_SQL,
};
