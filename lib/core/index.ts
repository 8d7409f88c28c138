// For applications.
export { isLockService } from './is-lock-service.js';
export { LockService } from './lock-service.js';
export { currentLock, currentLocks, LockHandle } from './holding/lock-handle.js';
export { singleFlight, type SingleFlightOptions, type SingleFlightSteps } from './single-flight/single-flight.js';
export { LockSet } from './several/lock-set.js';
export { type KeyClaim, resolveKeys, type WantedKey } from './several/wanted-keys.js';
export {
  type AcquireOptions,
  type AdoptOptions,
  type LockServiceOptions,
  type ResolvedOptions,
  resolveOptions,
  type TryAcquireOptions,
} from './options/lock-options.js';
export {
  type HoldState,
  type LockEvent,
  type LockEvents,
  type LockObserver,
  type LockOrder,
  type LockSnapshot,
  type TermEnd,
} from './events/lock-observer.js';
export { type CallTrace, type LockTracer, type TracedCall, type TracedHold } from './events/lock-tracer.js';
export { type EventStreamOptions, type LockEventStream } from './events/lock-event-stream.js';
export { type LeaderWork, type LeadOptions } from './leading/lead-options.js';
export { Leadership } from './leading/leadership.js';
export { readSequencer, type Sequencer, type SequencerState } from './holding/sequencer.js';
export * from './contract/errors.js';

// For writers of stores. The backends of this library import no other file of the core.
export {
  type AdoptedLease,
  type Caller,
  type GrantedLease,
  type Guarantee,
  type LeaseAttempt,
  type LeaseStore,
  type LeaseWatch,
  type TransferredLease,
  type RefusedLease,
  type StoreTraits,
  type TtlLimits,
} from './contract/lease-store.js';
export { type Claim, parseClaim, fits, isExclusive, MAX_PERMITS, type Share } from './contract/claim.js';
export {
  type FailureKind,
  failureKindOf,
  type ErrorWithFailureKind,
  withFailureKind,
} from './contract/failure-kind.js';
export type { BackendHealth, HealthSource, NodeHealth } from './contract/health.js';
export { HealthListeners } from './contract/health-listeners.js';
export { ReportedHealth } from './contract/reported-health.js';
export { type Holder, type HolderMetadata } from './contract/holder.js';
export { type KeyHolder, type KeyState, type KeyWaiter, type LeaseState } from './contract/key-state.js';
export { type PollingOptions } from './leasing/contender-context.js';
export { LockBackend } from './leasing/lock-backend.js';
export { type BackendFactory, type GivenBackend, isGivenBackend, openBackend } from './leasing/open-backend.js';

// For writers of stores: parts that most stores need.
export { AbortListener } from './time/abort-listener.js';
export { isFulfilledWithin } from './time/within.js';
export { areCredentials, type Credentials } from './kit/credentials.js';
export { type ValueOrGetter, getPresentValue } from './kit/value-or-getter.js';
export {
  assertNumber,
  assertOneOf,
  assertOptions,
  assertText,
  assertWhole,
  refuseOption,
  shownOption,
} from './kit/option-checks.js';
export { Deadline } from './time/deadline.js';
export { ownContext, runDetached } from './kit/own-context.js';
export { runWithoutContext } from './time/without-context.js';
export { errorText } from './contract/error-text.js';
export { FrameReader } from './kit/frame-reader.js';
export { withFallback } from './kit/with-fallback.js';
export { importClient } from './kit/import-client.js';
export { PROCESS_START_MS } from './time/real-timers.js';
export { scheduleReplyTimeout } from './time/reply-timeout.js';
export { ReplyTimeouts } from './kit/reply-timeouts.js';
export { Semaphore } from './kit/semaphore.js';
export { SessionEntries } from './kit/session-entries.js';
export { sharedState } from './kit/shared-state.js';
export { JoinedSignal } from './kit/joined-signal.js';
export { retryUntilAnswered } from './kit/retry-until-answered.js';
export { assertKey, replaceNumbers } from './contract/key.js';
export { ownMetadata, packHolder, packMetadata, unpackHolder } from './contract/holder.js';
export { MAX_WAITERS } from './contract/key-state.js';
export { runOutsideLocks } from './holding/call-tree.js';
export { type Clock, pause, systemClock, type Timer } from './time/timers.js';
export { ClaimLeases } from './line/claim-leases.js';
export {
  withoutExpired,
  applyClaim,
  isHolder,
  type Line,
  type LineEntry,
  findReadyWaiters,
  createRefusal,
  withNewOwner,
  withRenewal,
  describeLine,
  withoutOwner,
} from './line/line.js';
export { type LineStorage, type StoredLine, type LineUpdate } from './line/line-storage.js';
export { canAwaitGrant, isHolderByIndex, type Obstacle, findObstacle } from './line/obstacle.js';
export { packLine, unpackLine } from './line/packed-line.js';
export { WakeUps } from './leasing/wake-ups.js';
export { getEndOfTrust } from './leasing/trust.js';
