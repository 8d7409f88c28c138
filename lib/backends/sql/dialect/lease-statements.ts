import type { HolderMetadata, LeaseAttempt, LeaseState } from '../../../core/index.js';
import type { Query } from '../connections/query.js';

export const MAX_REAPED_ROWS = 1_000;

export interface ClaimsRefusal {
  /** Whether the row holds the claims of several owners, which `ClaimLineStorage` reads. */
  readonly isHeldByClaims?: boolean;
}

export interface LeaseStatements {
  tryAcquire(query: Query, lease: LeaseRow): Promise<LeaseAttempt & ClaimsRefusal>;
  renew(query: Query, lease: Omit<LeaseRow, 'metadata'>): Promise<boolean>;
  release(query: Query, lease: OwnedKey): Promise<boolean>;
  isHeldBy(query: Query, lease: OwnedKey): Promise<boolean>;
  look(query: Query, key: string): Promise<LeaseState>;
  keys(query: Query, prefix: string): AsyncGenerator<readonly string[]>;
  /**
   * Deletes some of the rows that were free for longer than `idleMs`. Resolves to whether there may be more. Tokens of
   * these keys still grow afterwards, because a new row takes its first token from the clock.
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

/** Names of a table and its columns, in the form in which statements contain them. */
export interface LeaseColumns {
  readonly table: string;
  readonly key: string;
  readonly owner: string;
  readonly token: string;
  readonly expiresAt: string;
  readonly metadata: string;
  /** Column with the time of the last write; in the library's own table, with the time of the acquisition. */
  readonly updatedAt: string | undefined;
  /**
   * Set for a table that older programs use, too. A release deletes the row, because older programs take any row for a
   * lock. Rows without an expiry are those of older programs, and end `abandonedAfterMs` after `updatedAt`.
   */
  readonly existingTable: { readonly abandonedAfterMs: number } | undefined;
}

export function createOwnColumns(table: string): LeaseColumns {
  const timeColumnNames = { expiresAt: 'expires_at', updatedAt: 'acquired_at' };
  return {
    table,
    key: 'lock_key',
    owner: 'owner',
    token: 'token',
    metadata: 'metadata',
    ...timeColumnNames,
    existingTable: undefined,
  };
}

/** Returns the column list of an `insert`. Its values must have this order. */
export function listColumnNames({ key, owner, token, expiresAt, metadata, updatedAt }: LeaseColumns): string {
  return [key, owner, token, expiresAt, metadata, ...(updatedAt === undefined ? [] : [updatedAt])].join(', ');
}
