import { claimOfOptions, EXCLUSIVE, ownerSuffixOf } from '../contract/claim.js';
import type { ResolvedOptions } from '../options/lock-options.js';

/** Lone surrogate between the key and the claim. No key contains one, because keys are well-formed. */
const CLAIM_SEPARATOR = '\ud800';

/**
 * Returns the name of a slot, which is the group of callers with the same key and the same claim. They take turns, and
 * can hand a lease to each other. The slot of exclusive callers has the key as its name.
 */
export function slotOf(key: string, options: ResolvedOptions): string {
  const suffix = ownerSuffixOf(options);
  return suffix === '' ? key : key + CLAIM_SEPARATOR + suffix;
}

/** Returns how many callers of a slot may ask the server at a time: as many as could hold the key together. */
export function maxTurnsOf(options: ResolvedOptions): number {
  const claim = claimOfOptions(options);
  return claim.limit === EXCLUSIVE.limit ? 1 : Math.floor(claim.limit / claim.permits);
}

/** Returns whether both callers would send the same request to the backend. */
export function haveSameRequest(
  one: ResolvedOptions | undefined,
  { ttlMs, lockDelayMs, minHoldMs }: ResolvedOptions,
): boolean {
  return one?.ttlMs === ttlMs && one.lockDelayMs === lockDelayMs && one.minHoldMs === minHoldMs;
}
