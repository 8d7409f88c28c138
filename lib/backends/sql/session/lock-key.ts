import type { HolderMetadata, LeaseAttempt } from '../../../core/index.js';
import { createReadOnlyServerError, DatabaseError, isReadOnlyError } from '../connections/database-error.js';
import { isTrue } from '../connections/query.js';
import { raiseToken } from '../dialect/key-row.js';
import type { OwnedKey } from '../dialect/lease-statements.js';
import { parseRefusal } from '../dialect/refusal.js';
import type { LockSession, SessionSettings } from './lock-session.js';

/**
 * Takes the lock of a key on the session, and raises the fencing token. After a failure, frees the lock, or ends the
 * session.
 */
export async function lockKey(
  { locks, table, ttlMs }: SessionSettings,
  session: LockSession,
  { key, owner }: OwnedKey,
  metadata: HolderMetadata,
): Promise<LeaseAttempt> {
  const { query } = session;
  const names = session.getLockNames(key, owner);
  try {
    const [answer] = await locks.tryLock(query, table, names, locks.keyRow.toColumnValue(key));
    if (isTrue(answer?.['is_read_only'])) throw createReadOnlyServerError();
    // `locked` is a number or a text, depending on the driver, and null where `GET_LOCK` of MySQL failed.
    const lockResult = String(Number(answer?.['locked'] ?? Number.NaN));
    if (lockResult === '0') return { ...parseRefusal(answer), acquired: false, retryAfterMs: null };
    if (lockResult === '-1') {
      // The lock was free, but another session, which the server is ending, still has the owner lock.
      await locks.unlock(query, names);
      return { acquired: false, retryAfterMs: 0 };
    }
    if (lockResult !== '1') throw new DatabaseError('the server could not lock', undefined);
    const fencingToken = await raiseToken(locks.keyRow, query, table, key, metadata, owner);
    return { acquired: true, fencingToken, ttlMs, revoked: session.endSignal };
  } catch (error) {
    if (isReadOnlyError(error)) session.destroy(error);
    else await locks.unlock(query, names).catch(() => session.destroy());
    throw error;
  }
}
