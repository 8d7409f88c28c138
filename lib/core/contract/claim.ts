/**
 * Part of a key that one acquisition wants. The claims to a key are in a line, in order of arrival. A claim holds the key
 * while its own permits, with those of all claims before it, are no more than its `of`.
 */
export interface Claim {
  readonly permits: number;
  readonly of: number;
}

/** Claim that is not exclusive, as events, errors and readings show it. */
export type Share =
  { readonly mode: 'shared' } | { readonly mode: 'permits'; readonly permits: number; readonly limit: number };

const ALL = 2 ** 31 - 1;

/** Claim to all of the key. */
export const EXCLUSIVE: Claim = { permits: ALL, of: ALL };
/** Claim of a reader, which fits beside every other reader. */
export const SHARED: Claim = { permits: 1, of: ALL };

/** Largest `limit` of any backend. Owners' names have room for its digits. */
export const MAX_PERMITS = 10_000;

/** Options by which a caller says what it wants of a key, see `TryAcquireOptions`. */
interface ClaimOptions {
  readonly mode?: 'exclusive' | 'shared';
  readonly limit?: number;
  readonly permits?: number;
}

export function claimFor({ mode, limit, permits = 1 }: ClaimOptions): Claim {
  if (limit !== undefined) return { permits, of: limit };
  return mode === 'shared' ? SHARED : EXCLUSIVE;
}

const SUFFIX_PATTERN = /~(?:s|(?<permits>[1-9]\d{0,4})-(?<of>[1-9]\d{0,4}))$/u;

/** Returns the end of an owner's name that tells its claim, so that no store needs a field for it. */
export function suffixOf({ mode, limit, permits = 1 }: ClaimOptions): string {
  if (limit !== undefined) return `~${permits}-${limit}`;
  return mode === 'shared' ? '~s' : '';
}

/** Returns the claim of an owner. A name that tells none wants all, so that no other owner gets in beside it. */
export function claimOf(owner: string): Claim {
  const found = SUFFIX_PATTERN.exec(owner);
  if (!found) return EXCLUSIVE;
  const { permits, of } = found.groups ?? {};
  return permits === undefined ? SHARED : { permits: Number(permits), of: Number(of) };
}

/** Returns whether `owner` wants all of a key. */
export function isExclusive(owner: string): boolean {
  return !SUFFIX_PATTERN.test(owner);
}

/** Returns whether `claim` holds the key behind the claims `before` it. */
export function fits(claim: Claim, before: Iterable<Claim>): boolean {
  let taken = claim.permits;
  for (const { permits } of before) taken += permits;
  return taken <= claim.of;
}

/** Returns whether a holder of `held` may do work that needs `wanted`. */
export function covers(held: Claim, wanted: Claim): boolean {
  if (held.permits === ALL) return true;
  return held.of === wanted.of && held.permits >= wanted.permits;
}

/** Returns the claim as events show it, or `undefined` for an exclusive one. */
export function shareOf({ permits, of }: Claim): Share | undefined {
  if (permits === ALL) return undefined;
  return of === ALL ? { mode: 'shared' } : { mode: 'permits', permits, limit: of };
}

/** Returns the claim as a property of an event or a reading. An exclusive claim has none. */
export function shareProperty(claim: Claim): { readonly share?: Share } {
  const share = shareOf(claim);
  return share ? { share } : {};
}

/** Returns the claim in words, for messages. */
export function describeClaim(claim: Claim): string {
  const share = shareOf(claim);
  if (!share) return 'exclusively';
  return share.mode === 'shared' ? 'shared' : `with ${share.permits} of ${share.limit} permits`;
}
