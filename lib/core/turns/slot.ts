import { claimOfOptions, EXCLUSIVE, ownerSuffixOf } from '../contract/claim.js';
import type { ResolvedOptions } from '../options/lock-options.js';

/** Lone surrogate, which no key contains, because keys are well-formed. */
const CLAIM_SEPARATOR = '\ud800';

/** Returns a name for all callers with the same key and claim. The name for exclusive callers is the key. */
export function slotOf(key: string, options: ResolvedOptions): string {
  const suffix = ownerSuffixOf(options);
  return suffix === '' ? key : key + CLAIM_SEPARATOR + suffix;
}

/**
 * Returns how many callers of a slot may ask the server at a time: as many as could hold the key together. Readers wait
 * for the answer to one of them, and then join it. Readers that do not wait ask for themselves.
 */
export function maxTurnsOf(options: ResolvedOptions): number {
  if (options.mode === 'shared') return options.waitMs === 0 ? Infinity : 1;
  const claim = claimOfOptions(options);
  return claim.limit === EXCLUSIVE.limit ? 1 : Math.floor(claim.limit / claim.permits);
}

/** Returns whether two callers of a slot would send the same request to the server. */
export function haveSameRequest(
  options: ResolvedOptions | undefined,
  { ttlMs, lockDelayMs, minHoldMs }: ResolvedOptions,
): boolean {
  return options?.ttlMs === ttlMs && options.lockDelayMs === lockDelayMs && options.minHoldMs === minHoldMs;
}
