import type { HolderMetadata, LeaseAttempt, LeaseState } from '../../../core/index.js';
import type { Query } from '../connections/query.js';

export const REAPED_AT_ONCE = 1_000;

/** Whether a refusal says that several owners hold the key, see `ClaimCell`. */
export interface MeetsLine {
  readonly meetsLine?: boolean;
}

/** The statements on a row of the lease strategy. Each compares owners and reads the database's clock. */
export interface LeaseStatements {
  tryAcquire(query: Query, lease: LeaseRow): Promise<LeaseAttempt & MeetsLine>;
  renew(query: Query, lease: Omit<LeaseRow, 'metadata'>): Promise<boolean>;
  release(query: Query, lease: OwnedKey): Promise<boolean>;
  isHeldBy(query: Query, lease: OwnedKey): Promise<boolean>;
  look(query: Query, key: string): Promise<LeaseState>;
  /** The keys that are held and begin with `prefix`, by pages. */
  keys(query: Query, prefix: string): AsyncGenerator<readonly string[]>;
  /**
   * Deletes rows that were free for longer, `REAPED_AT_ONCE` at most; resolves to whether there may be more. Their
   * keys' tokens go on growing, by the clock.
   */
  reap(query: Query, idleMs: number): Promise<boolean>;
}

export interface OwnedKey {
  readonly key: string;
  readonly owner: string;
}

export interface LeaseRow extends OwnedKey {
  readonly ttlMs: number;
  readonly metadata: HolderMetadata;
}

/** The table of the leases, and its columns, quoted where that is needed. */
export interface LeaseColumns {
  readonly rows: string;
  readonly key: string;
  readonly owner: string;
  readonly token: string;
  readonly expiresAt: string;
  readonly metadata: string;
  readonly updatedAt: string | undefined;
  /**
   * The table was there before. A release deletes the row, as older programs take any row for a lock. Rows without an
   * expiry are theirs, and end this long after `updatedAt`.
   */
  readonly existing: { readonly abandonedAfterMs: number } | undefined;
}

/** A table of the migration's. A release leaves the row, without an owner, so that its token is not forgotten. */
export function ownColumns(rows: string): LeaseColumns {
  const times = { expiresAt: 'expires_at', updatedAt: 'acquired_at' };
  return { rows, key: 'lock_key', owner: 'owner', token: 'token', metadata: 'metadata', ...times, existing: undefined };
}

/** The columns of an insert, in order. */
export function namesOf({ key, owner, token, expiresAt, metadata, updatedAt }: LeaseColumns): string {
  return [key, owner, token, expiresAt, metadata, ...(updatedAt === undefined ? [] : [updatedAt])].join(', ');
}
