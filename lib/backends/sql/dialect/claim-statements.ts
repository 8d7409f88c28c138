import type { Query } from '../connections/query.js';

/** The owner of a row whose `metadata` is a line of claims. No owner has that name, so every other statement finds it held. */
export const LINE_OWNER = '|';

/** A row as it was seen: a swap compares all of it. */
export interface ClaimRow {
  readonly owner: string | null;
  readonly token: bigint;
  readonly metadata: string | null;
  /** How much longer the row has an owner. */
  readonly leftMs: number;
  /** Where those who wait stand in the row: as it has them, and the owners who were seen of late. */
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
  /** In milliseconds since 1970, by the database's clock. */
  readonly untilMs: number;
  /** Whom to notify, where the server can. */
  readonly ready: readonly string[];
}

/** The statements on a row that several owners hold. */
export interface ClaimStatements {
  /** The largest limit: the row keeps all claims in one text. */
  readonly maxPermits: number;
  read(query: Query, key: string): Promise<ClaimReading>;
  /** Writes the row unless it is another one by now, or one is there that was missing. */
  swap(query: Query, key: string, seen: ClaimRow | undefined, next: NextRow): Promise<boolean>;
}

/** Out of a row that has a `now` in any case, and the rest where the key has one. */
export function readingOf(found: Record<string, unknown> | undefined, usPerNow: bigint): ClaimReading {
  const { now, owner, token, metadata, remaining } = found ?? {};
  const nowUs = BigInt(typeof now === 'string' ? now : 0) * usPerNow;
  if (typeof token !== 'string') return { nowUs, row: undefined };
  const texts = { owner: textOrNull(owner), metadata: textOrNull(metadata) };
  return { nowUs, row: { ...texts, token: BigInt(token), leftMs: Math.max(0, Number(remaining)) } };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
