// The service, and what an application sees of it.
export { LockService, type LockSnapshot } from './lock-service.js';
export { LockHandle } from './lock-handle.js';
export { type AcquireOptions, type LockServiceOptions, type TryAcquireOptions } from './lock-options.js';
export { type HoldState, type LockEvent, type LockEvents, type LockObserver } from './lock-observer.js';
export { type EventStreamOptions, type LockEventStream } from './lock-event-stream.js';
export { readSequencer, type Sequencer, type SequencerState } from './sequencer.js';
export { currentLock, currentLocks } from './current-locks.js';
export * from './errors.js';
export { OptimisticConflictError } from './optimistic-conflict-error.js';

// For writers of stores: the two doors into the core. A backend of ours imports this file of the core, and no other.
export { type Asker, type GrantedLease, type LeaseAttempt, type LeaseStore, type RefusedLease } from './lease-store.js';
export {
  type AcquireRequest,
  type BackendFactory,
  type BackendHealth,
  type Guarantee,
  type HealthSource,
  type Holder,
  type HolderMetadata,
  type Lease,
  type LockBackend,
  type NodeHealth,
  type Place,
  type TtlLimits,
} from './lock-backend.js';
export { NotSentError } from './not-sent-error.js';
export { type PollingOptions } from './contending.js';
export { PollingBackend } from './polling-backend.js';
export { type GivenBackend, isBackend, openBackend } from './open-backend.js';

// For writers of stores: what most of them need.
export { AbortListener } from './abort-listener.js';
export { within } from './within.js';
export { Deadline } from './deadline.js';
export { detached } from './detached.js';
export { errorText } from './kit/error-text.js';
export { replyTimeout } from './kit/reply-timeout.js';
export { Semaphore } from './kit/semaphore.js';
export { assertKey } from './key.js';
export { type Linked, LinkedQueue } from './linked-queue.js';
export { packHolder, packMetadata, unpackHolder } from './packed-holder.js';
export { outside } from './reentrancy.js';
export { ReportedHealth } from './reported-health.js';
export { type Clock, pause, systemClock, type Timer } from './timers.js';
export { WakeUps } from './wake-ups.js';
export { trustedUntil } from './watchdog.js';
