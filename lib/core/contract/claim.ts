/**
 * Part of a key that one acquisition wants: `permits` out of `limit`. The claims to a key form a line in order of
 * arrival. A claim holds the key while its permits and those of all claims before it add up to at most its `limit`.
 */
export interface Claim {
  readonly permits: number;
  readonly limit: number;
}

/** Claim that is not exclusive, in the form for events, errors and readings. */
export type Share =
  { readonly mode: 'shared' } | { readonly mode: 'permits'; readonly permits: number; readonly limit: number };

/** Limit of a claim without the option `limit`. An exclusive claim takes as many permits, a shared claim takes one. */
const ALL_PERMITS = 2 ** 31 - 1;

export const EXCLUSIVE: Claim = { permits: ALL_PERMITS, limit: ALL_PERMITS };
export const SHARED: Claim = { permits: 1, limit: ALL_PERMITS };

/** Largest `limit` of any backend. */
export const MAX_PERMITS = 10_000;

interface ClaimOptions {
  readonly mode?: 'exclusive' | 'shared';
  readonly limit?: number;
  readonly permits?: number;
}

export function claimOfOptions({ mode, limit, permits = 1 }: ClaimOptions): Claim {
  if (limit !== undefined) return { permits, limit };
  return mode === 'shared' ? SHARED : EXCLUSIVE;
}

const CLAIM_SUFFIX_PATTERN = /~(?:s|(?<permits>[1-9]\d{0,4})-(?<limit>[1-9]\d{0,4}))$/u;

/** Returns the end of an owner's name, which encodes the claim, so that stores need no field for it. */
export function ownerSuffixOf({ mode, limit, permits = 1 }: ClaimOptions): string {
  if (limit !== undefined) return `~${permits}-${limit}`;
  return mode === 'shared' ? '~s' : '';
}

/** Returns the claim that an owner's name encodes. A name without a suffix stands for an exclusive claim. */
export function parseClaim(owner: string): Claim {
  const match = CLAIM_SUFFIX_PATTERN.exec(owner);
  if (!match) return EXCLUSIVE;
  const { permits, limit } = match.groups ?? {};
  return permits === undefined ? SHARED : { permits: Number(permits), limit: Number(limit) };
}

/** Returns whether the claim of `owner` is exclusive. */
export function isExclusive(owner: string): boolean {
  return !CLAIM_SUFFIX_PATTERN.test(owner);
}

/** Returns whether `claim` holds the key when the claims `before` are ahead of it in line. */
export function fits(claim: Claim, before: Iterable<Claim>): boolean {
  let permitCount = claim.permits;
  for (const { permits } of before) permitCount += permits;
  return permitCount <= claim.limit;
}

/** Returns whether a caller with `heldClaim` needs no more of the key for `wantedClaim`. */
export function covers(heldClaim: Claim, wantedClaim: Claim): boolean {
  if (heldClaim.permits === ALL_PERMITS) return true;
  return heldClaim.limit === wantedClaim.limit && heldClaim.permits >= wantedClaim.permits;
}

/** Returns the claim as a `Share`, or `undefined` for an exclusive claim. */
export function shareOf({ permits, limit }: Claim): Share | undefined {
  if (permits === ALL_PERMITS) return undefined;
  return limit === ALL_PERMITS ? { mode: 'shared' } : { mode: 'permits', permits, limit };
}

/** Returns an object to spread: `{ share }`, or `{}` for an exclusive claim. */
export function shareProperty(claim: Claim): { readonly share?: Share } {
  const share = shareOf(claim);
  return share ? { share } : {};
}

export function describeClaim(claim: Claim): string {
  const share = shareOf(claim);
  if (!share) return 'exclusively';
  return share.mode === 'shared' ? 'shared' : `with ${share.permits} of ${share.limit} permits`;
}
