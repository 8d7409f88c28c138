import { LockConfigurationError, type Share, StaleFenceError } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { FenceStatements } from '../dialect/fence-statements.js';
import { hasWarnedOfStaleSnapshot, warnOfStaleSnapshot } from './stale-snapshot.js';

/** A lock, or the fencing token and share that another process has sent. */
export interface Fencing {
  readonly fencingToken: bigint;
  /** Share of the key; absent for an exclusive lock. See `LockHandle.share`. */
  readonly share?: Share | undefined;
}

export interface FenceTransaction {
  readonly query: Query;
  readonly statements: FenceStatements;
  readonly table: string;
  /** Whether the application began the transaction, and may have read in it before its lock was acquired. */
  readonly isJoined: boolean;
  /** Object for which a warning of stale reads is given once, such as a data source. */
  readonly source: object;
}

/**
 * Raises the fence of a resource to the token of a lock. A share raises nothing, but keeps others from raising the
 * fence until the transaction ends.
 * @throws StaleFenceError when a newer token was there
 */
export async function raiseFence(transaction: FenceTransaction, resource: string, lock: Fencing): Promise<void> {
  const { statements, table, isJoined, source } = transaction;
  const query = (isJoined && (await statements.createCurrentReadQuery?.(transaction.query))) || transaction.query;
  const shouldCheckSnapshot = isJoined && !hasWarnedOfStaleSnapshot(source);
  const isSnapshotStale = shouldCheckSnapshot && (await statements.isSnapshotStale?.(query, table, resource));
  // A share raises the fence to 0, which inserts a missing row: only a row can keep others from raising the fence.
  const isRaised = await statements.raise(query, table, resource, lock.share ? 0n : lock.fencingToken);
  const newestToken = isRaised
    ? undefined
    : await statements.readNewestToken(query, table, resource, lock.share !== undefined);
  const isTokenStale = lock.share && newestToken !== undefined ? newestToken > lock.fencingToken : !isRaised;
  if (isTokenStale) throw new StaleFenceError(resource, { token: lock.fencingToken, newest: newestToken });
  if (isSnapshotStale === true) warnOfStaleSnapshot(source, resource);
}

const MAX_TOKEN = 2n ** 63n - 1n;

/**
 * Checks the token at run time: a missing token must not pass for an old one.
 * @throws LockConfigurationError for a value that is no lock
 */
export function assertToken(caller: string, lock: { readonly fencingToken?: unknown } | undefined): void {
  const token = lock?.fencingToken;
  if (typeof token === 'bigint' && token >= 0n && token <= MAX_TOKEN) return;
  throw new LockConfigurationError(
    `${caller} needs a lock with its fencingToken, a bigint; it was ${String(token)}`,
    'lock',
  );
}
