/** How much of a key somebody in a history wants: `permits` of `of`. */
export interface Wanted {
  readonly permits: number;
  readonly of: number;
}

const ALL = 1_000_000;

/**
 * The end of an owner's name says it: nothing for all of the key, `~s` for a share, `~2-5` for two of five permits. Read
 * here apart from the library, which is what a history judges.
 */
export function wantedBy(owner: string): Wanted {
  const [, claim = ''] = owner.split('~');
  if (claim === '') return { permits: ALL, of: ALL };
  const [permits = 1, of = ALL] = claim === 's' ? [] : claim.split('-').map(Number);
  return { permits, of };
}

export function wantsAll(owner: string): boolean {
  return wantedBy(owner).of === ALL && wantedBy(owner).permits === ALL;
}

export function reads(owner: string): boolean {
  return owner.endsWith('~s');
}

/** Whether they may have a key at a time: in some order, each fits behind those before it. By their limits is the best one. */
export function fitTogether(owners: readonly string[]): boolean {
  let taken = 0;
  return owners
    .map(wantedBy)
    .toSorted((a, b) => a.of - b.of)
    .every(({ permits, of }) => (taken += permits) <= of);
}
