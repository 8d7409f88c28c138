import type { AcquisitionDependencies } from './acquiring/acquisition.js';
import { Locker } from './acquiring/locker.js';
import { followHealth } from './holding/follow-health.js';
import { Holds, type HoldTurns } from './holding/holds.js';
import { createServiceContext } from './holding/service-context.js';
import { ServiceEnd } from './holding/service-end.js';
import { Leaderships } from './leading/leaderships.js';
import type { LockBackend } from './leasing/lock-backend.js';
import { keyPrefixOf, type LockServiceOptions } from './options/lock-options.js';
import { OptionResolver } from './options/option-resolver.js';
import { OrderWatch } from './ordering/order-watch.js';
import { SeveralKeys } from './several/several-keys.js';
import { Turns } from './turns/turns.js';

/** Objects of which a `LockService` consists. */
export interface ServiceParts extends AcquisitionDependencies {
  readonly locker: Locker;
  readonly severalKeys: SeveralKeys;
  readonly leaderships: Leaderships;
  readonly serviceEnd: ServiceEnd;
}

/** @throws LockConfigurationError */
export function createServiceParts(backend: LockBackend, options: LockServiceOptions): ServiceParts {
  const { defaults, maxWaiters = 100_000, orderWarnings = false, shutdownGraceMs } = options;
  const resolver = new OptionResolver(defaults, backend.store);
  const keyPrefix = keyPrefixOf(options);
  const stopController = new AbortController();
  const service = createServiceContext(backend, options, stopController.signal);
  const turns: HoldTurns = new Turns(service.pendingWork);
  const holds = new Holds(service, turns, options);
  const orderWatch = orderWarnings ? new OrderWatch(orderWarnings, keyPrefix, service.observers) : undefined;
  const parts = { service, turns, holds, maxWaiters, orderWatch };
  const leaderships = new Leaderships(parts, resolver, keyPrefix);
  const stopFollowingHealth = followHealth(service, holds);
  const serviceEnd = new ServiceEnd({ ...parts, leaderships, stopFollowingHealth }, stopController, shutdownGraceMs);
  const locker = new Locker(parts, resolver, serviceEnd, keyPrefix);
  return { ...parts, locker, severalKeys: new SeveralKeys(locker, service.clock), leaderships, serviceEnd };
}
