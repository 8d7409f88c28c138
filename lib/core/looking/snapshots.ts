import { shareProperty } from '../contract/claim.js';
import type { LockSnapshot } from '../events/lock-observer.js';
import type { Holds, HoldTurns } from '../holding/holds.js';
import type { Clock } from '../time/timers.js';

/** Describes the locks that this process holds. @param leads whether a key is a leader's */
export function snapshotsOf(
  holds: Holds,
  turns: HoldTurns,
  clock: Clock,
  leads: (key: string) => boolean,
): LockSnapshot[] {
  return [...holds].map(({ key, slot, claim, state, fencingToken, acquiredAt }) => ({
    key,
    state,
    fencingToken,
    heldMs: clock.now() - acquiredAt,
    waitersHere: turns.countWaiters(slot),
    leads: leads(key),
    ...shareProperty(claim),
  }));
}
