import { postgresSessionLocks } from './session-locks.js';
import { advisoryLockId } from '../tables/session-lock-name.js';
import { postgresKeyRow } from './key-row.js';
import { isTrue } from '../connections/query.js';
import { storedText } from '../tables/stored-key.js';
import { quotedText } from '../tables/table-name.js';
import { NOW } from './clock.js';
import { IS_READ_ONLY } from './read-only.js';
import { postgresServerSessions } from './server-sessions.js';
import type { OwnedKey } from '../dialect/lease-statements.js';
import { type RowLocks, SAVEPOINT } from '../dialect/row-locks.js';

/** A pooler that lends sessions for a transaction told an id of its own in the handshake. */
const SESSION_ID = 'pg_backend_pid()::text as session_id';

/** PostgreSQL 17 can end a transaction for its age alone; those before it do not know the setting. */
const NO_OTHER_LIMIT = `select set_config('transaction_timeout', '0', true) where current_setting('transaction_timeout', true) is not null`;

export const postgresRowLocks: RowLocks = {
  row: postgresKeyRow,
  serverSessions: postgresServerSessions,
  token: (table) => `select token::text as token, ${IS_READ_ONLY} as is_read_only from ${table} where lock_key = $1`,

  /** Asks for the right to make it first: a wait for another process that just does would end as an error. */
  async create(query, table, key) {
    await query('set local lock_timeout = 1', []);
    const [row] = await query(
      `with turn as (select pg_try_advisory_xact_lock(${advisoryLockId(`make\0${table}`, key)}) as is_ours),
         made as (
           insert into ${table} (lock_key, token, expires_at, acquired_at) select $1, 0, ${NOW}, ${NOW} from turn
           where is_ours on conflict (lock_key) do nothing
         )
       select is_ours, ${SESSION_ID} from turn`,
      [storedText(key)],
    );
    return isTrue(row?.['is_ours']);
  },

  /** With `nowait` the server would write an error into its log for each refusal. */
  lock(query, table, key) {
    return query(
      `with ours as (${this.token(table)} for update skip locked)
       select token, is_read_only, false as is_held, ${SESSION_ID} from ours
       union all select null, false, true, null from ${table} where lock_key = $1 and not exists (select from ours)`,
      [storedText(key)],
    );
  },

  /** A wait that ends without the row is an error, which the server writes into its log unless a block there handles it. */
  async lockInLine(query, table, key) {
    await query(`select set_config('${KEY_SETTING}', $1, true)`, [storedText(key)]);
    await query(`do ${quotedText(waitFor(table))}`, []);
    return this.lock(query, table, key);
  },

  limit: (query, { ttlMs, waitMs }) => {
    const wait = waitMs > 0 ? `; set local lock_timeout = ${Math.ceil(waitMs)}; set local statement_timeout = 0` : '';
    return query(`set local idle_in_transaction_session_timeout = ${ttlMs}; ${NO_OTHER_LIMIT}${wait}`, []);
  },
  settle: (query) => query('set local lock_timeout to default; set local statement_timeout to default', []),

  async take(query, table, lock, metadata) {
    const token = await postgresKeyRow.raise(query, table, lock.key, metadata);
    await query(`select pg_advisory_xact_lock(${markOf(table, lock)}); savepoint ${SAVEPOINT}`, []);
    return token;
  },
  async undo(query) {
    await query(`rollback to savepoint ${SAVEPOINT}; commit`, []);
  },

  isHeldBy: async (query, table, lock) =>
    (await postgresSessionLocks.sessionWith(query, String(markOf(table, lock)))) !== undefined,

  held: /^55P03$/u,
  busy: /^(40001|40P01)$/u,
  aborted: /^25P02$/u,
};

/** A `do` has no parameters, so it finds the key here. */
const KEY_SETTING = 'nestjs_distributed_lock.key';

/** A row that is there and cannot be locked would be waited for without a pause. */
function waitFor(table: string): string {
  const ofKey = `from ${table} where lock_key = current_setting('${KEY_SETTING}')`;
  return `begin
    perform 1 ${ofKey} for update;
    if not found and exists (select ${ofKey}) then
      raise insufficient_privilege using message = 'a policy of row-level security hides the row from updates';
    end if;
  exception when lock_not_available then null;
  end`;
}

/**
 * The advisory lock of a transaction, which ends with it. Everybody sees it, and nobody sees the row that the
 * transaction has.
 */
function markOf(table: string, { key, owner }: OwnedKey): bigint {
  return advisoryLockId(`row\0${table}\0${owner}`, key);
}
