import { claimFor, EXCLUSIVE, suffixOf } from '../contract/claim.js';
import type { ResolvedOptions } from '../options/lock-options.js';

/** Separates the key from the claim. No key contains it, because keys are well-formed. */
const LONE_SURROGATE = '\ud800';

/**
 * Returns the name of a slot. Callers of a slot can take each other's place: they have the same key, and the same claim to
 * it. The slot of an exclusive claim has the key for a name.
 */
export function slotOf(key: string, options: ResolvedOptions): string {
  const suffix = suffixOf(options);
  return suffix === '' ? key : key + LONE_SURROGATE + suffix;
}

/** Returns how many callers of a slot may ask the server at a time: no more than could ever hold the key. */
export function maxTurnsOf(options: ResolvedOptions): number {
  const claim = claimFor(options);
  return claim.of === EXCLUSIVE.of ? 1 : Math.floor(claim.of / claim.permits);
}

/** Returns whether both callers would send the same request to the backend. */
export function haveSameRequest(
  next: ResolvedOptions | undefined,
  { ttlMs, lockDelayMs, minHoldMs }: ResolvedOptions,
): boolean {
  return next?.ttlMs === ttlMs && next.lockDelayMs === lockDelayMs && next.minHoldMs === minHoldMs;
}
