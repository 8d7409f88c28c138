import type { AcquireOptions, LockTimeoutError } from '../core/index.js';

/** A call that found its key held by somebody else. */
export interface BusyCall {
  /** Names the key and, where the backend knows, the holder: for logs, not for clients. */
  readonly error: LockTimeoutError;
  readonly args: readonly unknown[];
}

/** The outcome of a call whose key stays held. */
export type OnBusy = 'throw' | 'skip' | ((call: BusyCall) => unknown);

/** A variable of this type hides `onBusy` from the compiler; one of `LockedOptions<'skip'>` shows it. */
export interface LockedOptions<Busy extends OnBusy = OnBusy> extends AcquireOptions {
  /** The name of one of several backends. @default 'default' */
  backend?: string;
  /**
   * When the key stays held for `waitMs`: `throw` the `LockTimeoutError`; `skip` the call, which resolves to `undefined` (an
   * Observable completes empty); or answer with the result of a function. `skip` does not wait unless `waitMs` says so. Other
   * errors pass, those of a backend and of the method. The method's type must allow for it. @default 'throw'
   */
  onBusy?: Busy;
  /**
   * Whether an HTTP request goes on waiting for the lock when its client has gone. Otherwise it gives up, and the method does
   * not run. A method that runs by then goes on in any case. @default false
   */
  outliveClient?: boolean;
}
