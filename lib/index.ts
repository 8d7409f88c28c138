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
export {
  type AcquireOptions,
  type BackendFactory,
  type BackendHealth,
  type CallTrace,
  currentLock,
  currentLocks,
  type EventStreamOptions,
  type GivenBackend,
  type Guarantee,
  type Holder,
  type HoldState,
  isLockError,
  type KeyClaim,
  type KeyHolder,
  type KeyState,
  type KeyWaiter,
  Leadership,
  type LeaderWork,
  type LeadOptions,
  type LeaseStore,
  LockBackend,
  LockBackendError,
  LockConfigurationError,
  LockDeadlockError,
  LockError,
  type LockEvent,
  type LockEvents,
  type LockEventStream,
  LockHandle,
  LockLostError,
  type LockObserver,
  type LockOrder,
  LockService,
  type LockServiceOptions,
  LockSet,
  LockShutdownError,
  type LockSnapshot,
  runDetached,
  LockTimeoutError,
  type LockTracer,
  type LockWait,
  type LossReason,
  OptimisticConflictError,
  readSequencer,
  type Sequencer,
  type SequencerState,
  type Share,
  singleFlight,
  type SingleFlightOptions,
  type SingleFlightSteps,
  StaleFenceError,
  type TermEnd,
  type TracedCall,
  type TracedHold,
  type TryAcquireOptions,
  type WantedKey,
} from './core/index.js';
