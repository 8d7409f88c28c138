import { shown } from '../contract/claim.js';
import type { LockSnapshot } from '../events/lock-observer.js';
import type { HoldRegistry } from '../holding/hold-registry.js';

/** The locks that this process holds. @param leads whether a key is a leader's */
export function snapshotsOf(holds: HoldRegistry, leads: (key: string) => boolean): LockSnapshot[] {
  const { clock } = holds.settings;
  return [...holds].map(({ key, slot, claim, state, fencingToken, since }) => ({
    key,
    state,
    fencingToken,
    heldMs: clock.now() - since,
    waitersHere: holds.queue.waiting(slot),
    leads: leads(key),
    ...shown(claim),
  }));
}
