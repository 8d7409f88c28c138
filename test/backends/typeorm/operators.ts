import { mysqlKeyRow } from '../../../lib/backends/sql/mysql/key-row.js';
import { postgresKeyRow } from '../../../lib/backends/sql/postgres/key-row.js';
import { getAdvisoryLockId, getUserLockName } from '../../../lib/backends/sql/tables/session-lock-name.js';
import { eventually, type SqlConnection } from '../../support/index.js';

export type Ask = (sql: string, parameters?: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>;

/** How an operator of a database sees the locks of one strategy, and takes one away. */
export interface SqlOperator {
  /** Who has the key: an owner, or the id of a connection. */
  holders(ask: Ask, key: string): Promise<readonly string[]>;
  /** Resolves when nobody has it any more. */
  revoke(ask: Ask, key: string): Promise<void>;
}

/** MariaDB makes its list of transactions anew when nobody has asked for it for a tenth of a second. */
export const LIST_MS = 120;

const columnOf = (type: SqlConnection['backend'], key: string): unknown =>
  (type === 'postgres' ? postgresKeyRow : mysqlKeyRow).toColumnValue(key);

function lease(type: SqlConnection['backend']): SqlOperator {
  const ofKey = `lock_key = ${type === 'postgres' ? '$1' : '?'}`;
  return {
    async holders(ask, key) {
      const held = `select owner from distributed_lock where ${ofKey} and owner is not null`;
      const rows = await ask(held, [columnOf(type, key)]).catch(nothingWithoutTable);
      return rows.map(({ owner }) => String(owner));
    },
    async revoke(ask, key) {
      await ask(`update distributed_lock set owner = null where ${ofKey}`, [columnOf(type, key)]);
    },
  };
}

const ROWS_OF_MYSQL = {
  holders: `select 'somebody' as id from (select 1) as once where exists (select 1 from distributed_lock where lock_key = ?)
     and not exists (select 1 from distributed_lock where lock_key = ? for update skip locked)`,
  transactions: `select trx_mysql_thread_id as id from information_schema.innodb_trx where trx_rows_modified > 0`,
  kill: (id: unknown) => `kill connection ${String(id)}`,
};

const ROWS = {
  postgres: {
    holders: `with free as (select from distributed_lock where lock_key = $1 for update skip locked)
       select 'somebody' as id from distributed_lock where lock_key = $2 and not exists (select from free)`,
    transactions: `select pid as id from pg_stat_activity where backend_xid is not null`,
    kill: (id: unknown) => `select pg_terminate_backend(${String(id)})`,
  },
  mariadb: ROWS_OF_MYSQL,
  mysql: ROWS_OF_MYSQL,
};

function row(type: SqlConnection['backend']): SqlOperator {
  const { holders, transactions, kill } = ROWS[type];
  return {
    async holders(ask, key) {
      const column = columnOf(type, key);
      const rows = await ask(holders, [column, column]).catch(nothingWithoutTable);
      return rows.map(({ id }) => String(id));
    },
    /** A test that revokes has one transaction open. */
    async revoke(ask, key) {
      if ((await this.holders(ask, key)).length === 0) throw new Error(`no transaction has ${key}`);
      const isFree = async (): Promise<boolean> => {
        for (const { id } of await ask(transactions)) await ask(kill(id)).catch(gone);
        return (await this.holders(ask, key)).length === 0;
      };
      await eventually(isFree, { everyMs: LIST_MS });
    },
  };
}

/** The ids of the sessions that have a key. The names of `GET_LOCK` count in the whole server, so they contain the database. */
const SESSIONS = {
  postgres: (key: string) =>
    `select pid as id from pg_locks where locktype = 'advisory' and granted and objsubid = 1
     and ((classid::bigint << 32) | objid::bigint) = ${getAdvisoryLockId('public\0distributed_lock', key)}`,
  mariadb: usersOf,
  mysql: usersOf,
};

function usersOf(key: string): string {
  return `select id from (select is_used_lock('${getUserLockName('test\0distributed_lock', key)}') as id) as used where id is not null`;
}

function session(type: SqlConnection['backend']): SqlOperator {
  return {
    async holders(ask, key) {
      return (await ask(SESSIONS[type](key))).map(({ id }) => String(id));
    },
    async revoke(ask, key) {
      const sessions = await this.holders(ask, key);
      if (sessions.length === 0) throw new Error(`no session has ${key}`);
      for (const id of sessions) {
        await ask(ROWS[type].kill(id));
        await eventually(async () => !(await this.holders(ask, key)).includes(id));
      }
    },
  };
}

export const OPERATORS = { lease, row, session };

/** Nobody has asked for a lock yet since the server was restarted empty. */
function nothingWithoutTable(error: unknown): [] {
  if (/distributed_lock.* does ?n[o']t exist/u.test(String(error))) return [];
  throw error;
}

/** The rest of an old list. */
function gone(error: unknown): void {
  if (!String(error).includes('Unknown thread id')) throw error;
}
