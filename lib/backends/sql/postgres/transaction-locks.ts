import { LockConfigurationError } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { TransactionLocks } from '../dialect/transaction-locks.js';
import { advisoryLockId } from '../tables/session-lock-name.js';
import { quotedText } from '../tables/table-name.js';

/** Settings with these names end with the transaction. A `do` has no parameters, so it finds the lock's id here. */
const ID_SETTING = 'nestjs_distributed_lock.id';
const FORMER_LIMIT = 'nestjs_distributed_lock.former_limit';
const ID = `current_setting('${ID_SETTING}')::bigint`;

/** The server counts to here, which is more than three weeks. */
const LONGEST_LIMIT_MS = 2 ** 31 - 1;

/** A wait that ends without the lock must be no error, which would abort the whole transaction. */
const WAIT = `do ${quotedText(`begin
  perform pg_advisory_xact_lock(${ID});
exception when lock_not_available then null;
end`)}`;

/** Some clients know no columns without a type, as `pg_advisory_xact_lock` has it: hence the texts. */
export const postgresTransactionLocks: TransactionLocks = {
  async lock(query, _table, key, waitMs) {
    const id = String(advisoryLockId('transaction', key));
    if (waitMs === Infinity) return ask(query, 'pg_advisory_xact_lock', id);
    if (await ask(query, 'pg_try_advisory_xact_lock', id)) return true;
    if (waitMs === 0) return false;
    await query(
      `select set_config('${FORMER_LIMIT}', current_setting('lock_timeout'), true) as a,
         set_config('lock_timeout', cast($1 as text), true) as b, set_config('${ID_SETTING}', cast($2 as text), true) as c`,
      [String(Math.min(Math.max(1, Math.ceil(waitMs)), LONGEST_LIMIT_MS)), id],
    );
    await query(WAIT, []);
    const [row] = await query(
      `select pg_try_advisory_xact_lock(${ID})::text as locked,
         set_config('lock_timeout', current_setting('${FORMER_LIMIT}'), true) as limit_again`,
      [],
    );
    return row?.['locked'] === 'true';
  },
};

/** Reads of higher isolation levels go on in the past, from before the wait. PostgreSQL has no lower one: it is only a name. */
async function ask(query: Query, lock: string, id: string): Promise<boolean> {
  const [row] = await query(
    `select level as isolation, case when level in ('read committed', 'read uncommitted') then ${lock}(cast(cast($1 as text) as bigint))::text end as locked
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
  // A function without a result has an empty text as one.
  return row?.['locked'] === '' || row?.['locked'] === 'true';
}
