import { type Claim, EXCLUSIVE, fits } from '../contract/claim.js';

/**
 * Event after which a waiter's claim may fit. `end`: the claim at index `at` ends. `grant`: that claim ends, or becomes
 * a holder and announces it. `departure`: any claim ahead of the waiter ends.
 */
export type Obstacle =
  { readonly until: 'end' | 'grant'; readonly at: number } | { readonly until: 'departure'; readonly at?: never };

/** Returns whether each claim of a line holds the key, by the index of the claim. */
export function isHolderByIndex(line: readonly Claim[]): boolean[] {
  let permitCount = 0;
  return line.map(({ permits, limit }) => (permitCount += permits) <= limit);
}

/**
 * Returns the one event that a waiter watches, so that a change wakes few waiters. `undefined`: `claim` fits now.
 * A claim that excludes the waiter has to end. For a waiting claim that becomes a holder before the waiter anyway, its
 * grant is enough. `test/core/line-of-nodes.spec.ts` checks for all short lines that every waiter whose claim fits is
 * woken.
 */
export function findObstacle(claim: Claim, before: readonly Claim[]): Obstacle | undefined {
  if (fits(claim, before)) return undefined;
  const holderFlags = isHolderByIndex(before);
  const index = before.findLastIndex(
    (other, i) => excludes(other, claim) || (!holderFlags[i] && canAwaitGrant(claim, other)),
  );
  const nearestObstacle = before[index];
  if (!nearestObstacle) return { until: 'departure' };
  return { until: excludes(nearestObstacle, claim) ? 'end' : 'grant', at: index };
}

/** Returns whether it is enough that `waiter` waits for the grant of `other`, which is ahead of it in line. */
export function canAwaitGrant(waiter: Claim, other: Claim): boolean {
  const hasLimit = other.limit < EXCLUSIVE.limit;
  return hasLimit && !excludes(other, waiter) && other.limit >= waiter.limit - waiter.permits;
}

/** Returns whether `other` cannot hold the key while `one` alone is ahead of it in line. */
function excludes(one: Claim, other: Claim): boolean {
  return one.permits + other.permits > other.limit;
}
