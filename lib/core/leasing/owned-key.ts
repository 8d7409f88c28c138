import type { Clock } from '../time/timers.js';

/** Key on the server that an owner has, or may have without knowing, such as after a lost reply. */
export interface OwnedKey {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly clock: Clock;
}

/**
 * Releases a key in the background, because a request of its owner may have been carried out.
 * @param lastAttempt request that must end before the release. Nothing is released if this request was never sent
 */
export type ReleaseInBackground = (ownedKey: OwnedKey, lastAttempt?: Promise<unknown>) => void;
