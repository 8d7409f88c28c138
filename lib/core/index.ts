/** For writers of backends: the two doors into the core, what they share, and the service that stands on them. */
export {
  type Lease,
  type LockBackend,
  type AcquireRequest,
  type BackendHealth,
  type HealthSource,
} from './lock-backend.js';
export { type BackendFactory, type GivenBackend } from './lock-backend.js';
export { isBackend, openBackend } from './open-backend.js';
export { type RenewalListener } from './lock-backend.js';
export {
  type Guarantee,
  type Holder,
  type HolderMetadata,
  type NodeHealth,
  type Place,
  type TtlLimits,
} from './lock-backend.js';
export { type Asker, type GrantedLease, type LeaseAttempt, type LeaseStore, type RefusedLease } from './lease-store.js';
export { NotSentError } from './not-sent-error.js';
export { PollingBackend, type PollingOptions } from './polling-backend.js';
export { AbortListener } from './abort-listener.js';
export { Deadline } from './deadline.js';
export { type Clock, systemClock, type Timer } from './timers.js';
export { assertKey } from './key.js';
export { packHolder, packMetadata, unpackHolder } from './packed-holder.js';
export { ReportedHealth } from './reported-health.js';
export { LockService, type LockSnapshot } from './lock-service.js';
export { LockHandle } from './lock-handle.js';
export { readSequencer, type Sequencer, type SequencerState } from './sequencer.js';
export { type AcquireOptions, type LockServiceOptions, type TryAcquireOptions } from './lock-options.js';
export { type HoldState, type LockEvent, type LockEvents, type LockObserver } from './lock-observer.js';
export { type EventStreamOptions, type LockEventStream } from './lock-event-stream.js';
export { currentLock, currentLocks, outside } from './reentrancy.js';
export * from './errors.js';
export { OptimisticConflictError } from './optimistic-conflict-error.js';
