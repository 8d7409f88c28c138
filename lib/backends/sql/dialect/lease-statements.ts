import type { HolderMetadata, LeaseAttempt, LeaseState } from '../../../core/index.js';
import type { Query } from '../connections/query.js';

/** Maximum number of rows that one `reap` deletes. */
export const MAX_REAPED_ROWS = 1_000;

export interface ClaimsRefusal {
  /** Whether several owners hold the key, whose claims are a line in the row: see `ClaimCell`. */
  readonly isHeldByClaims?: boolean;
}

/** The statements on a row of the lease strategy. Each compares owners and reads the database's clock. */
export interface LeaseStatements {
  tryAcquire(query: Query, lease: LeaseRow): Promise<LeaseAttempt & ClaimsRefusal>;
  renew(query: Query, lease: Omit<LeaseRow, 'metadata'>): Promise<boolean>;
  release(query: Query, lease: OwnedKey): Promise<boolean>;
  isHeldBy(query: Query, lease: OwnedKey): Promise<boolean>;
  look(query: Query, key: string): Promise<LeaseState>;
  /** Yields the held keys that begin with `prefix`, page by page. */
  keys(query: Query, prefix: string): AsyncGenerator<readonly string[]>;
  /**
   * Deletes rows that were free for longer than `idleMs`, `MAX_REAPED_ROWS` at most. Resolves to whether there may be more.
   * The tokens of the keys still grow afterwards, because they follow the clock.
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

/** The table of the leases and its columns, as statements name them. */
export interface LeaseColumns {
  readonly table: string;
  readonly key: string;
  readonly owner: string;
  readonly token: string;
  readonly expiresAt: string;
  readonly metadata: string;
  readonly updatedAt: string | undefined;
  /**
   * Set for a table that older programs use, too. A release deletes the row, because older programs take any row for a
   * lock. Rows without an expiry are those of older programs, and end `abandonedAfterMs` after `updatedAt`.
   */
  readonly existingTable: { readonly abandonedAfterMs: number } | undefined;
}

/** Returns the columns of a table that this library created. A release keeps the row and its token, without an owner. */
export function createOwnColumns(table: string): LeaseColumns {
  const timeColumns = { expiresAt: 'expires_at', updatedAt: 'acquired_at' };
  return {
    table,
    key: 'lock_key',
    owner: 'owner',
    token: 'token',
    metadata: 'metadata',
    ...timeColumns,
    existingTable: undefined,
  };
}

/** Returns the columns of an insert: key, owner, token, expiry, metadata and, where there is one, `updatedAt`. */
export function listColumnNames({ key, owner, token, expiresAt, metadata, updatedAt }: LeaseColumns): string {
  return [key, owner, token, expiresAt, metadata, ...(updatedAt === undefined ? [] : [updatedAt])].join(', ');
}
