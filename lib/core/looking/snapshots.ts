import { shareProperty } from '../contract/claim.js';
import type { LockSnapshot } from '../events/lock-observer.js';
import type { Holds, HoldTurns } from '../holding/holds.js';
import type { Clock } from '../time/timers.js';

export function describeHolds(
  holds: Holds,
  turns: HoldTurns,
  clock: Clock,
  isLeaderKey: (key: string) => boolean,
): LockSnapshot[] {
  return [...holds].map(({ key, slot, claim, state, fencingToken, acquiredAt }) => ({
    key,
    state,
    fencingToken,
    heldMs: clock.now() - acquiredAt,
    waitersHere: turns.countWaiters(slot),
    leads: isLeaderKey(key),
    ...shareProperty(claim),
  }));
}
