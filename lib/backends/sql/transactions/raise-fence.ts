import { LockConfigurationError, type Share, StaleFenceError } from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import type { FenceStatements } from '../dialect/fence-statements.js';
import { hasWarnedOfSnapshots, warnOfStaleSnapshot } from './stale-snapshot.js';

/** A lock, or what another process sent of one. */
export interface Fencing {
  readonly fencingToken: bigint;
  /** See `LockHandle.share`. */
  readonly share?: Share | undefined;
}

/** A transaction, and where its fences are. */
export interface FenceTransaction {
  readonly query: Query;
  readonly statements: FenceStatements;
  readonly table: string;
  /** Whether the application began the transaction, and may have read in it before its lock was acquired. */
  readonly isJoined: boolean;
  /** Stale reads are warned of once for each of these. */
  readonly source: object;
}

/**
 * Raises the fence of a resource to the token of a lock. A lock that is not exclusive raises nothing, but keeps others
 * from raising the fence until the transaction ends.
 * @throws StaleFenceError when a newer token was there
 */
export async function raiseFence(transaction: FenceTransaction, resource: string, lock: Fencing): Promise<void> {
  const { statements, table, isJoined, source } = transaction;
  const query = (isJoined && (await statements.seeingPresent?.(transaction.query))) || transaction.query;
  const isLooking = isJoined && !hasWarnedOfSnapshots(source);
  const isSnapshotOlder = isLooking && (await statements.isSnapshotOlder?.(query, table, resource));
  // Without a row there would be nothing to keep others from raising.
  const isRaised = await statements.raise(query, table, resource, lock.share ? 0n : lock.fencingToken);
  const newest = isRaised ? undefined : await statements.newest(query, table, resource, lock.share !== undefined);
  const isStale = lock.share && newest !== undefined ? newest > lock.fencingToken : !isRaised;
  if (isStale) throw new StaleFenceError(resource, { token: lock.fencingToken, newest });
  if (isSnapshotOlder === true) warnOfStaleSnapshot(source, resource);
}

const LARGEST_TOKEN = 2n ** 63n - 1n;

/**
 * Not every caller has a compiler, and a missing token must not pass for an old one.
 * @throws LockConfigurationError for what is no lock
 */
export function assertToken(caller: string, lock: { readonly fencingToken?: unknown } | undefined): void {
  const token = lock?.fencingToken;
  if (typeof token === 'bigint' && token >= 0n && token <= LARGEST_TOKEN) return;
  throw new LockConfigurationError(
    `${caller} needs a lock with its fencingToken, a bigint; it was ${String(token)}`,
    'lock',
  );
}
