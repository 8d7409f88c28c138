import type { LeaseStore, LeaseWatch } from '../contract/lease-store.js';
import { runWithoutContext } from '../time/without-context.js';
import type { Clock } from '../time/timers.js';
import type { Hold } from './hold.js';
import type { ServiceContext } from './service-context.js';

interface HoldsById extends Iterable<Hold> {
  getById(id: string): Hold | undefined;
}

/**
 * Maximum number of renewals per second because of losses that the store reported and a reading did not confirm. A
 * server that forgets watched keys for lack of space would otherwise cause endless renewals.
 */
const MAX_RENEWALS_PER_SECOND = 20;

/** Revokes or renews holds when the store reports that they may be lost. Returns `undefined` if the store cannot. */
export function watchLeases({ backend, clock }: ServiceContext, holds: HoldsById): LeaseWatch | undefined {
  const mayRenew = createRateLimit(clock, MAX_RENEWALS_PER_SECOND);
  return backend.store.watchLeases?.((key) =>
    runWithoutContext(() => {
      if (key === undefined) renewAll(holds);
      else void revokeOrRenew(backend.store, key, holds, mayRenew);
    }),
  );
}

function renewAll(holds: HoldsById): void {
  for (const { watchdog, options } of holds) if (options.watchdog) watchdog.renewWithNewRequest();
}

async function revokeOrRenew(store: LeaseStore, key: string, holds: HoldsById, mayRenew: () => boolean): Promise<void> {
  const watchdog = holds.getById(key)?.watchdog;
  if (!watchdog) return;
  const isHeld = await isStillHeld(store, key, watchdog.lease.owner);
  const hold = holds.getById(key);
  // During the reading the lease may have been released or handed off.
  if (hold?.watchdog !== watchdog) return;
  if (isHeld === false) watchdog.revoke();
  else if (hold.options.watchdog && mayRenew()) watchdog.renewNow();
}

/** Resolves to `undefined` when the store cannot tell. */
async function isStillHeld(store: LeaseStore, key: string, owner: string): Promise<boolean | undefined> {
  try {
    return await store.isHeldBy?.(key, owner);
  } catch {
    return undefined;
  }
}

/** Returns a function that returns true at most `maxPerSecond` times a second. */
function createRateLimit(clock: Clock, maxPerSecond: number): () => boolean {
  let secondEndsAt = 0;
  let count = 0;
  return () => {
    const now = clock.now();
    if (now >= secondEndsAt) [secondEndsAt, count] = [now + 1_000, 0];
    count += 1;
    return count <= maxPerSecond;
  };
}
