import type { LeaseStore, LeaseWatch } from '../contract/lease-store.js';
import { runDetached } from '../time/detached.js';
import type { Clock } from '../time/timers.js';
import type { Hold } from './hold.js';
import type { ServiceContext } from './service-context.js';

/** Holds of a service, by their ids. */
interface HoldsById extends Iterable<Hold> {
  get(id: string): Hold | undefined;
}

/**
 * Number of leases a second that are renewed after a change that did not end them, so that the store watches them again. A
 * server that forgets keys for lack of space would otherwise be asked without end.
 */
const MAX_RENEWED_PER_SECOND = 20;

/** Asks about each hold whose lease may have ended, as the store is told by its server. */
export function watchLeases({ backend, clock }: ServiceContext, holds: HoldsById): LeaseWatch | undefined {
  const mayRenew = createRateLimit(clock, MAX_RENEWED_PER_SECOND);
  return backend.store.watchLeases?.((key) =>
    runDetached(() => {
      if (key === undefined) renewAll(holds);
      else void checkHold(backend.store, key, holds, mayRenew);
    }),
  );
}

function renewAll(holds: HoldsById): void {
  for (const { watchdog, options } of holds) if (options.watchdog) watchdog.renewAnew();
}

/** Reads whether the exclusive hold of a key still has it. A renewal answers where the reading fails. */
async function checkHold(store: LeaseStore, key: string, holds: HoldsById, mayRenew: () => boolean): Promise<void> {
  const watchdog = holds.get(key)?.watchdog;
  if (!watchdog) return;
  const isHeld = await store.isHeldBy?.(key, watchdog.lease.owner).catch(() => undefined);
  const hold = holds.get(key);
  // The lease may have been released meanwhile, or handed on within this process.
  if (hold?.watchdog !== watchdog) return;
  if (isHeld === false) watchdog.revoke();
  else if (hold.options.watchdog && mayRenew()) watchdog.renewNow();
}

/** Returns a function that tells whether something may be done once more within the present second. */
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
