/**
 * How much of a key one acquisition wants. A key is a line of claims in order of arrival: a claim holds the key when the
 * permits of all before it and its own are no more than its `of`.
 */
export interface Claim {
  readonly permits: number;
  readonly of: number;
}

/** A claim that is not exclusive, as events, errors and readings show it. */
export type Share =
  { readonly mode: 'shared' } | { readonly mode: 'permits'; readonly permits: number; readonly limit: number };

const ALL = 2 ** 31 - 1;

/** Wants all of the key. */
export const EXCLUSIVE: Claim = { permits: ALL, of: ALL };
/** Fits beside every other one of its kind. */
export const SHARED: Claim = { permits: 1, of: ALL };

/** The largest `limit` of any backend: five digits. */
export const MOST_PERMITS = 10_000;

/** The share of a key that a caller asks for, see `TryAcquireOptions`. */
interface Wanted {
  readonly mode?: 'exclusive' | 'shared';
  readonly limit?: number;
  readonly permits?: number;
}

export function claimFor({ mode, limit, permits = 1 }: Wanted): Claim {
  if (limit !== undefined) return { permits, of: limit };
  return mode === 'shared' ? SHARED : EXCLUSIVE;
}

const SUFFIX = /~(?:s|(?<permits>[1-9]\d{0,4})-(?<of>[1-9]\d{0,4}))$/u;

/** The end of an owner's name, by which every store keeps the claim without a field of its own. */
export function suffixOf({ mode, limit, permits = 1 }: Wanted): string {
  if (limit !== undefined) return `~${permits}-${limit}`;
  return mode === 'shared' ? '~s' : '';
}

/** The claim of an owner. One that says nothing of it wants all, so nobody is let in beside a stranger. */
export function claimOf(owner: string): Claim {
  const found = SUFFIX.exec(owner);
  if (!found) return EXCLUSIVE;
  const { permits, of } = found.groups ?? {};
  return permits === undefined ? SHARED : { permits: Number(permits), of: Number(of) };
}

/** Whether `owner` has a key to itself. */
export function isExclusive(owner: string): boolean {
  return !SUFFIX.test(owner);
}

/** Whether `claim` holds the key behind `before`. */
export function fits(claim: Claim, before: Iterable<Claim>): boolean {
  let taken = claim.permits;
  for (const { permits } of before) taken += permits;
  return taken <= claim.of;
}

/** Whether who has `held` may do what asks for `wanted`. */
export function covers(held: Claim, wanted: Claim): boolean {
  if (held.permits === ALL) return true;
  return held.of === wanted.of && held.permits >= wanted.permits;
}

/** `undefined`: exclusive. */
export function shareOf({ permits, of }: Claim): Share | undefined {
  if (permits === ALL) return undefined;
  return of === ALL ? { mode: 'shared' } : { mode: 'permits', permits, limit: of };
}

/** As a part of what is shown. */
export function shown(claim: Claim): { readonly share?: Share } {
  const share = shareOf(claim);
  return share ? { share } : {};
}

/** For messages. */
export function describeClaim(claim: Claim): string {
  const share = shareOf(claim);
  if (!share) return 'exclusively';
  return share.mode === 'shared' ? 'shared' : `with ${share.permits} of ${share.limit} permits`;
}
