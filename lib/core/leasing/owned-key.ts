import type { Clock } from '../time/timers.js';

/** A key that is, or may be, an owner's. */
export interface OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly clock: Clock;
}

/**
 * Frees an owner in the background, whose request may have been carried out. `lastAttempt` has to be over first; where
 * that is all there was, and it was not sent, there is nothing to free.
 */
export type CleanUp = (owned: OwnedKey, lastAttempt?: Promise<unknown>) => void;
