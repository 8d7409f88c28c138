import { setMaxListeners } from 'node:events';
import { type HolderMetadata, ownMetadata } from '../contract/holder.js';
import { Observers } from '../events/observers.js';
import { WaitGroup } from '../kit/wait-group.js';
import type { LockBackend } from '../leasing/lock-backend.js';
import type { LockServiceOptions } from '../options/lock-options.js';
import { type Clock, systemClock } from '../time/timers.js';

export interface ServiceContext {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly observers: Observers;
  readonly metadata: HolderMetadata;
  /** Signal that aborts when no caller may get a lock any more. */
  readonly stopSignal: AbortSignal;
  /** Requests and hand-offs that the end of the service waits for. */
  readonly pendingWork: WaitGroup;
}

export function createServiceContext(
  backend: LockBackend,
  { label, clock = systemClock, observers = [] }: LockServiceOptions,
  stopSignal: AbortSignal,
): ServiceContext {
  // Every pending lock-delay adds a listener, so that many listeners are no leak.
  setMaxListeners(0, stopSignal);
  return {
    backend,
    clock,
    observers: new Observers(backend.name, observers),
    metadata: ownMetadata(label),
    stopSignal,
    pendingWork: new WaitGroup(),
  };
}
