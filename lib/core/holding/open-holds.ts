import { setMaxListeners } from 'node:events';
import { ownMetadata } from '../contract/holder.js';
import type { Observers } from '../events/observers.js';
import { detached } from '../kit/detached.js';
import type { LockBackend } from '../leasing/lock-backend.js';
import type { LockServiceOptions } from '../lock-options.js';
import { systemClock } from '../time/timers.js';
import { outside } from './call-tree.js';
import { HoldRegistry } from './hold-registry.js';

/** The holds of a service, which hear of the backend's health until `unsubscribe`. */
export function openHolds(
  backend: LockBackend,
  options: LockServiceOptions,
  observers: Observers,
  stopped: AbortSignal,
): { readonly holds: HoldRegistry; readonly unsubscribe: (() => void) | undefined } {
  const { label, maxWaiters = 100_000, clock = systemClock } = options;
  // Each lock-delay that is under way listens to it: many listeners are expected.
  setMaxListeners(0, stopped);
  const metadata = ownMetadata(label);
  const holds = new HoldRegistry({ backend, clock, observers, metadata, handOffs: options, maxWaiters, stopped });
  const unsubscribe = outside(() =>
    backend.store.health?.onChange((health) => detached(() => holds.onHealthChange(health))),
  );
  return { holds, unsubscribe };
}
