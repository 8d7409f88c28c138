import type { Query } from '../connections/query.js';

/**
 * Owner of a row whose `metadata` holds the claims of several owners. No caller has this id, so that the lease
 * statements treat the row as held.
 */
export const CLAIMS_OWNER = '|';

/** Row of a key that several owners may hold. `swap` compares all values except `leftMs`. */
export interface ClaimRow {
  readonly owner: string | null;
  readonly token: bigint;
  readonly metadata: string | null;
  readonly leftMs: number;
  /** Column of waiters, on PostgreSQL only: its raw value, and the waiters who were seen lately. */
  readonly waiting?: { readonly raw: unknown; readonly owners: readonly string[] };
}

export interface ClaimReading {
  /** The database's clock, in microseconds since 1970. */
  readonly nowUs: bigint;
  readonly row: ClaimRow | undefined;
}

export interface NextRow {
  readonly owner: string | null;
  readonly token: bigint;
  readonly metadata: string | null;
  /** End of the lease, in milliseconds since 1970 by the database's clock. */
  readonly untilMs: number;
  readonly ownersToNotify: readonly string[];
}

export interface ClaimStatements {
  /** Maximum number of permits of a key. It is limited because the row keeps all claims in one text. */
  readonly maxPermits: number;
  read(query: Query, key: string): Promise<ClaimReading>;
  /** Writes the row. Resolves to false, and writes nothing, when the row is no longer `expectedRow`. */
  swap(query: Query, key: string, expectedRow: ClaimRow | undefined, nextRow: NextRow): Promise<boolean>;
}

/**
 * Parses the columns of a query that always returns `now`, and the others only where the key has a row.
 * @param microsecondsPerUnit number of microseconds in the unit of the column `now`
 */
export function parseClaimReading(
  columns: Record<string, unknown> | undefined,
  microsecondsPerUnit: bigint,
): ClaimReading {
  const { now, owner, token, metadata, remaining } = columns ?? {};
  const nowUs = BigInt(typeof now === 'string' ? now : 0) * microsecondsPerUnit;
  if (typeof token !== 'string') return { nowUs, row: undefined };
  const texts = { owner: getTextOrNull(owner), metadata: getTextOrNull(metadata) };
  return { nowUs, row: { ...texts, token: BigInt(token), leftMs: Math.max(0, Number(remaining)) } };
}

function getTextOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
