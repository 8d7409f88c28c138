/** For applications of Nest: the module, the decorators and what they give. @module nestjs-distributed-lock */
export { DistributedLockModule } from './nest/module/distributed-lock.module.js';
export {
  DISTRIBUTED_LOCK_OPTIONS,
  type DistributedLockAsyncOptions,
  type DistributedLockExtras,
  type DistributedLockOptions,
  type DistributedLockOptionsFactory,
  type NamedBackends,
} from './nest/module/distributed-lock-options.js';
export { Locked } from './nest/locked/locked.decorator.js';
export { type KeyFunction } from './nest/keys/locked-keys.js';
export { type BusyCall, type LockedDecorator, type LockedOptions, type OnBusy } from './nest/locked/locked-types.js';
export { oncePer } from './nest/locked/once-per.js';
export { Leads, type LeadsOptions } from './nest/leads/leads.decorator.js';
export { Unlocked } from './nest/locked/unlocked.decorator.js';
export { LockKey } from './nest/keys/lock-key.decorator.js';
export { CurrentLock } from './nest/locked/current-lock.decorator.js';
export { RequireSequencer, type RequireSequencerOptions } from './nest/sequencer/require-sequencer.decorator.js';
export { getLockServiceToken, InjectLockService } from './nest/inject-lock-service.decorator.js';
export { type AnsweredCode, type LockAnswer, type LockAnswers } from './nest/requests/lock-answers.js';
export { LockLogger, type LockLoggerOptions } from './nest/module/lock-logger.js';
export { LockService } from './core/lock-service.js';
export { currentLock, currentLocks, LockHandle } from './core/holding/lock-handle.js';
export { LockSet } from './core/several/lock-set.js';
export { type KeyClaim, type WantedKey } from './core/several/wanted-keys.js';
export { type LeaderWork, type LeadOptions } from './core/leading/lead-options.js';
export { Leadership } from './core/leading/leadership.js';
export { readSequencer, type Sequencer, type SequencerState } from './core/holding/sequencer.js';
export { type AcquireOptions, type LockServiceOptions, type TryAcquireOptions } from './core/lock-options.js';
export {
  type HoldState,
  type LockEvent,
  type LockEvents,
  type LockObserver,
  type LockOrder,
  type LockSnapshot,
  type TermEnd,
} from './core/events/lock-observer.js';
export { type CallTrace, type LockTracer, type TracedCall, type TracedHold } from './core/events/lock-tracer.js';
export { type EventStreamOptions, type LockEventStream } from './core/events/lock-event-stream.js';
export { type Share } from './core/contract/claim.js';
export { type BackendHealth } from './core/contract/health.js';
export { type Holder } from './core/contract/holder.js';
export { type KeyHolder, type KeyState, type KeyWaiter } from './core/contract/key-state.js';
export { type Guarantee, type LeaseStore } from './core/contract/lease-store.js';
export { LockBackend } from './core/leasing/lock-backend.js';
export { type BackendFactory, type GivenBackend } from './core/leasing/open-backend.js';
export {
  LockBackendError,
  isLockError,
  LockConfigurationError,
  LockDeadlockError,
  LockError,
  LockLostError,
  LockShutdownError,
  LockTimeoutError,
  type LockWait,
  type LossReason,
  OptimisticConflictError,
  StaleFenceError,
} from './core/contract/errors.js';
