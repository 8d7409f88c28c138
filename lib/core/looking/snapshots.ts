import { shareProperty } from '../contract/claim.js';
import type { LockSnapshot } from '../events/lock-observer.js';
import type { Holds, HoldTurns } from '../holding/holds.js';
import type { ServiceContext } from '../holding/service-context.js';

/** Objects of a service from which `describeHolds` reads. */
interface HoldingParts {
  readonly service: ServiceContext;
  readonly holds: Holds;
  readonly turns: HoldTurns;
  readonly leaderships: { haveLock(key: string): boolean };
}

export function describeHolds({ service, holds, turns, leaderships }: HoldingParts): LockSnapshot[] {
  return [...holds].map(({ key, slot, claim, state, fencingToken, acquiredAt }) => ({
    key,
    state,
    fencingToken,
    heldMs: service.clock.now() - acquiredAt,
    waitersHere: turns.countWaiters(slot),
    leads: leaderships.haveLock(key),
    ...shareProperty(claim),
  }));
}
