import { randomInt } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import {
  assertKey,
  Deadline,
  LockConfigurationError,
  pause,
  type Share,
  StaleFenceError,
  systemClock,
} from '../../../core/index.js';
import { type FencedTransaction, openTransaction, runFenced } from './fenced-transactions.js';
import { DEFAULT_FENCE_TABLE } from '../tables/lock-table.js';
import { isConflict } from '../optimistic/conflict.js';
import { inTransaction, isInTransaction } from '../optimistic/transaction-turns.js';
import { hasWarnedOfSnapshots, warnOfStaleSnapshot } from './stale-snapshot.js';
import { queryOn } from '../connections/query.js';
import { dialectOf } from '../databases.js';
import { assertTableName, quotedTable } from '../tables/table-name.js';

export interface FencedOptions {
  /** `schema.name` is in another schema than that of the data source. @default 'distributed_lock_fence' */
  tableName?: string;
}

/** A lock, or what another process sent of one. */
interface Fencing {
  readonly fencingToken: bigint;
  /** See `LockHandle.share`. */
  readonly share?: Share | undefined;
}

/** How long a busy or deadlocked database is asked again for a transaction. */
const PATIENCE_MS = 2_000;
const RETRY_MS = 20;

/**
 * Runs `work` in a transaction that a former holder cannot commit: before anything else the transaction raises the
 * fence of `resource` to the lock's token, and is refused when a newer token was there. Works with the locks of every
 * backend. This is what makes a lease safe against a holder that was paused and does not know yet that it lost the
 * lock.
 *
 * A lock that is not exclusive raises nothing: it is refused when somebody with a newer token who had the key
 * exclusively has been here, and others wait with that until the transaction ends. Those who share a key never refuse
 * each other.
 *
 * Take the lock first, and let this function begin the transaction. One that has read before its lock was acquired
 * misses what the former holder committed: PostgreSQL refuses the fence then (40001); on MySQL and MariaDB, whose
 * reads go on in the past, the process is warned once (`LOCK_AFTER_SNAPSHOT`).
 *
 * Joins the transaction of `manager` if there is one, or the one in which this call tree has raised the same fence;
 * else opens one, and asks again for a while when the database is too busy to begin it. On SQLite, where TypeORM has
 * one connection for everybody, the transactions opened here take turns. The fence table is made by the migration
 * `CreateDistributedLock1760000000000`.
 * @see https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
 * @throws StaleFenceError a newer token was seen: `work` did not run; what `work` throws. The transaction is then
 * rolled back, by us if we opened it. LockConfigurationError for a resource that could be no key, and for what is no
 * lock
 */
export async function fenced<T>(
  manager: EntityManager,
  resource: string,
  lock: Fencing,
  work: (manager: EntityManager) => Promise<T>,
  options: FencedOptions = {},
): Promise<T> {
  const { tableName = DEFAULT_FENCE_TABLE } = options;
  assertTableName(tableName);
  assertKey(resource);
  assertToken(lock);
  const fence = { manager, tableName, resource };
  const inside = isInTransaction(manager) ? manager : openTransaction(fence);
  if (!inside) return inOwnTransaction(manager, (own, begun) => run({ ...fence, manager: own }, lock, work, begun));
  return run({ ...fence, manager: inside }, lock, work);
}

/** Raises the fence, then tells `begun`, then does the work. */
async function run<T>(
  fence: FencedTransaction,
  lock: Fencing,
  work: (manager: EntityManager) => Promise<T>,
  begun?: () => void,
): Promise<T> {
  const { manager, tableName, resource } = fence;
  const { options } = manager.connection;
  const dialect = dialectOf(options.type);
  const table = quotedTable(dialect, options, tableName);
  await dialect.lockForWriting?.(manager, table);
  const plain = queryOn(manager);
  const query = (!begun && (await dialect.seeingPresent?.(plain))) || plain;
  const isLooking = !begun && !hasWarnedOfSnapshots(manager.connection);
  const isSnapshotOlder = isLooking && (await dialect.isSnapshotOlderThanFence?.(query, table, resource));
  // Without a row there would be nothing to keep others from raising.
  const raised = await dialect.raiseFence(query, table, resource, lock.share ? 0n : lock.fencingToken);
  const newest = raised ? undefined : await dialect.newestFence(query, table, resource, lock.share !== undefined);
  const isStale = lock.share ? (newest ?? 0n) > lock.fencingToken : !raised;
  if (isStale) throw new StaleFenceError(resource, { token: lock.fencingToken, newest });
  if (isSnapshotOlder === true) warnOfStaleSnapshot(manager.connection, resource);
  begun?.();
  return runFenced(fence, () => work(manager));
}

/** Tries again where that may help, as long as `work` has not begun. */
async function inOwnTransaction<T>(
  manager: EntityManager,
  attempt: (own: EntityManager, begun: () => void) => Promise<T>,
): Promise<T> {
  const patience = Deadline.after(PATIENCE_MS);
  for (;;) {
    let begun = false;
    try {
      return await inTransaction(manager, (own) => attempt(own, () => (begun = true)));
    } catch (error) {
      if (begun || patience.passed || !isConflict(error)) throw error;
      await pause(systemClock, randomInt(RETRY_MS));
    }
  }
}

const LARGEST_TOKEN = 2n ** 63n - 1n;

/** Not every caller has a compiler, and a token that is missing must not pass for an old one. */
function assertToken(lock: { readonly fencingToken?: unknown } | undefined): void {
  const token = lock?.fencingToken;
  if (typeof token === 'bigint' && token >= 0n && token <= LARGEST_TOKEN) return;
  throw new LockConfigurationError(
    `fenced() needs a lock with its fencingToken, a bigint; it was ${String(token)}`,
    'lock',
  );
}
