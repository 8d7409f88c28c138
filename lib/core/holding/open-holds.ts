import { setMaxListeners } from 'node:events';
import type { BackendHealth } from '../contract/health.js';
import { ownMetadata } from '../contract/holder.js';
import type { Observers } from '../events/observers.js';
import { detached } from '../kit/detached.js';
import type { LockBackend } from '../leasing/lock-backend.js';
import { keyPrefixOf, type LockServiceOptions } from '../lock-options.js';
import { OrderWatch } from '../ordering/order-watch.js';
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
  const { label, maxWaiters = 100_000, clock = systemClock, orderWarnings = false } = options;
  // Each lock-delay that is under way listens to it: many listeners are expected.
  setMaxListeners(0, stopped);
  const metadata = ownMetadata(label);
  const orderWatch = orderWarnings ? new OrderWatch(orderWarnings, keyPrefixOf(options), observers) : undefined;
  const settings = { backend, clock, observers, metadata, handOffs: options, maxWaiters, orderWatch, stopped };
  const holds = new HoldRegistry(settings);
  let told: BackendHealth['status'] | undefined;
  const onChange = (health: BackendHealth): void => {
    // A connection may come and go while nothing that is asked over it is carried out.
    if (health.status !== told || health.nodes) observers.notify('healthChanged', () => health);
    told = health.status;
    onHealthChange(holds, health);
  };
  const unsubscribe = outside(() => backend.health.onChange((health) => detached(() => onChange(health))));
  return { holds, unsubscribe };
}

function onHealthChange(holds: HoldRegistry, { status, detail }: BackendHealth): void {
  for (const { watchdog, options } of holds) {
    // Without renewals nothing is asked that could fail, and nothing would ever be answered to end the doubt.
    if (!options.watchdog) continue;
    if (status === 'down') watchdog.suspect(new Error(detail ?? 'the connection is down'));
    else if (status === 'up') watchdog.renewNow();
  }
}
