import { type Claim, EXCLUSIVE, fits } from '../contract/claim.js';

/**
 * Event that may let a waiter in. `end`: the end of the claim at this index. `entry`: its end, or the moment at which it
 * gets in, which the claim makes known. `departure`: the end of any claim before the waiter.
 */
export type Obstacle =
  { readonly until: 'end' | 'entry'; readonly at: number } | { readonly until: 'departure'; readonly at?: never };

/** Returns for each claim of a line whether it holds the key. */
export function holdsByIndex(line: readonly Claim[]): boolean[] {
  let taken = 0;
  return line.map(({ permits, of }) => (taken += permits) <= of);
}

/**
 * Returns the one event that a waiter watches, so that a change wakes few. `undefined`: `claim` fits behind `before`.
 *
 * A claim that alone leaves too little has to end. Where another one waits and gets in earlier in any case, its entry is
 * soon enough. `test/core/line-of-nodes.spec.ts` tries all short lines: no waiter that fits goes on sleeping.
 */
export function obstacleOf(claim: Claim, before: readonly Claim[]): Obstacle | undefined {
  if (fits(claim, before)) return undefined;
  const holds = holdsByIndex(before);
  const at = before.findLastIndex((other, i) => excludes(other, claim) || (!holds[i] && canAwaitEntry(claim, other)));
  const nearest = before[at];
  if (!nearest) return { until: 'departure' };
  return { until: excludes(nearest, claim) ? 'end' : 'entry', at };
}

/** Returns whether `waiter` may watch for the entry of `other`, which is before it in line. */
export function canAwaitEntry(waiter: Claim, other: Claim): boolean {
  const hasPermits = other.of < EXCLUSIVE.of;
  return hasPermits && !excludes(other, waiter) && other.of >= waiter.of - waiter.permits;
}

function excludes(one: Claim, other: Claim): boolean {
  return one.permits + other.permits > other.of;
}
