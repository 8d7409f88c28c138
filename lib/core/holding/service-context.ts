import { setMaxListeners } from 'node:events';
import { type HolderMetadata, ownMetadata } from '../contract/holder.js';
import { Observers } from '../events/observers.js';
import { WaitGroup } from '../kit/wait-group.js';
import type { LockBackend } from '../leasing/lock-backend.js';
import type { LockServiceOptions } from '../options/lock-options.js';
import { type Clock, systemClock } from '../time/timers.js';

/** Things that all parts of one lock service share. */
export interface ServiceContext {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly observers: Observers;
  /** Description of this process, which the backend keeps beside its leases. */
  readonly metadata: HolderMetadata;
  /** Aborts when no caller may get a lock any more. */
  readonly stopped: AbortSignal;
  /** Counts requests to the backend and hand-overs that the end of the service waits for. */
  readonly underWay: WaitGroup;
}

/** @param stopped see `ServiceContext` */
export function createServiceContext(
  backend: LockBackend,
  { label, clock = systemClock, observers = [] }: LockServiceOptions,
  stopped: AbortSignal,
): ServiceContext {
  // Each lock-delay that is under way listens to it: many listeners are expected.
  setMaxListeners(0, stopped);
  return {
    backend,
    clock,
    observers: new Observers(backend.name, observers),
    metadata: ownMetadata(label),
    stopped,
    underWay: new WaitGroup(),
  };
}
