import { LockConfigurationError } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';
import { getAdvisoryLockId } from '../tables/session-lock-name.js';
import { quoteText } from '../tables/table-name.js';

/** Setting that passes the lock's id to a `do` block, which takes no parameters. It ends with the transaction. */
const LOCK_ID_SETTING = 'nestjs_distributed_lock.id';
const FORMER_LOCK_TIMEOUT_SETTING = 'nestjs_distributed_lock.former_limit';
const LOCK_ID_SQL = `current_setting('${LOCK_ID_SETTING}')::bigint`;

const MAX_LOCK_TIMEOUT_MS = 2 ** 31 - 1;

/** Waits for the lock. The block catches the error of a wait that was too long, which would abort the transaction. */
const WAIT_FOR_LOCK_SQL = `do ${quoteText(`begin
  perform pg_advisory_xact_lock(${LOCK_ID_SQL});
exception when lock_not_available then null;
end`)}`;

/** Results are cast to text, because some clients cannot read the type `void`. */
export const postgresTransactionLocks: TransactionLocks = {
  async lock(query, _table, key, waitMs) {
    const id = String(getAdvisoryLockId('transaction', key));
    if (waitMs === Infinity) return callLockFunction(query, 'pg_advisory_xact_lock', id);
    if (await callLockFunction(query, 'pg_try_advisory_xact_lock', id)) return true;
    if (waitMs === 0) return false;
    await query(
      `select set_config('${FORMER_LOCK_TIMEOUT_SETTING}', current_setting('lock_timeout'), true) as a,
         set_config('lock_timeout', cast($1 as text), true) as b, set_config('${LOCK_ID_SETTING}', cast($2 as text), true) as c`,
      [String(Math.min(Math.max(1, Math.ceil(waitMs)), MAX_LOCK_TIMEOUT_MS)), id],
    );
    await query(WAIT_FOR_LOCK_SQL, []);
    const [row] = await query(
      `select pg_try_advisory_xact_lock(${LOCK_ID_SQL})::text as locked,
         set_config('lock_timeout', current_setting('${FORMER_LOCK_TIMEOUT_SETTING}'), true) as limit_again`,
      [],
    );
    return row?.['locked'] === 'true';
  },
};

/**
 * @throws LockConfigurationError for a higher isolation level, whose reads show the state before the wait, and on a
 *   standby, whose locks exclude nobody on the primary
 */
async function callLockFunction(query: Query, functionName: string, id: string): Promise<boolean> {
  const [row] = await query(
    `select level as isolation, pg_is_in_recovery()::text as standby, case when level in ('read committed', 'read uncommitted') then ${functionName}(cast(cast($1 as text) as bigint))::text end as locked
     from current_setting('transaction_isolation') as level`,
    [id],
  );
  const isolation = String(row?.['isolation']);
  if (!/^read (un)?committed$/u.test(isolation)) {
    throw new LockConfigurationError(
      `lockIn() needs the isolation level READ COMMITTED, and this transaction is ${isolation.toUpperCase()}: its reads ` +
        'would miss what the former holder has committed',
      'tx',
    );
  }
  if (row?.['standby'] === 'true')
    throw new LockConfigurationError('lockIn() needs the primary: this transaction runs on a standby', 'tx');
  if (typeof row?.['locked'] !== 'string')
    throw new LockConfigurationError('lockIn() needs advisory locks, and this database answers with nothing', 'tx');
  // The result of a `void` function is an empty text.
  return row?.['locked'] === '' || row?.['locked'] === 'true';
}
