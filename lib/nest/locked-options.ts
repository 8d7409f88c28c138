import type { AcquireOptions, LockTimeoutError } from '../core/index.js';

/** A call that found its key held by somebody else. */
export interface BusyCall {
  /** Names the key and, where the backend knows, the holder: for logs, not for clients. */
  readonly error: LockTimeoutError;
  readonly args: readonly unknown[];
}

/** What becomes of a call whose key stays held. */
export type OnBusy = 'throw' | 'skip' | ((call: BusyCall) => unknown);

/** A variable of it hides from the compiler how it is answered when busy; one of `LockedOptions<'skip'>` says it. */
export interface LockedOptions<Busy extends OnBusy = OnBusy> extends AcquireOptions {
  /** Which of several backends to lock in. @default 'default' */
  backend?: string;
  /**
   * When the key stays held for `waitMs`: `throw` the `LockTimeoutError`; `skip` the call, which resolves to `undefined` (an
   * Observable completes empty); or answer with what a function returns. `skip` does not wait unless `waitMs` says so.
   * Nothing else is caught: not a backend that is down, nor what the method itself throws. The method's type must allow for it.
   * @default 'throw'
   */
  onBusy?: Busy;
  /**
   * Whether an HTTP request goes on waiting for the lock when its client has gone. Otherwise it gives up, and the method does
   * not run; one that runs by then goes on in any case.
   * @default false
   */
  outliveClient?: boolean;
}
