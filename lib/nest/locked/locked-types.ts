import type { Observable } from 'rxjs';
import type { AcquireOptions, LockTimeoutError } from '../../core/index.js';

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
   * When the key stays held for `waitMs`: `throw` the `LockTimeoutError`; `skip` the call, which resolves to
   * `undefined` (an Observable completes empty); or answer with the result of a function. `skip` does not wait unless
   * `waitMs` says so. Other errors pass, those of a backend and of the method. The method's type must allow for it.
   * @default 'throw'
   */
  onBusy?: Busy;
  /**
   * Whether a call goes on waiting for the lock when the request that it works for has ended: its client has gone, or
   * an interceptor has answered. Otherwise the method does not run. One that runs by then goes on. @default false
   */
  outliveClient?: boolean;
}

/** A lock takes time to get. Hence a locked method returns a promise or an Observable. */
export type Lockable = (...args: never[]) => Promise<unknown> | Observable<unknown>;

export interface LockedDecorator<Args extends unknown[] = [], Busy extends OnBusy = OnBusy> {
  <Owner extends object, Target extends Lockable>(
    target: Owner & FitsOwner<Owner>,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Target> & FitsKey<Args, Target> & FitsBusy<Busy, Target>,
  ): void;
  /** For `applyDecorators` only, which shows no method to check. */
  (
    this: '@Locked stands before a method of instances, and needs experimentalDecorators in tsconfig.json',
    target: object,
    name: string | symbol,
  ): void;
}

type FitsOwner<Owner> = Owner extends abstract new (...args: never[]) => unknown
  ? '@Locked stands before a method of instances, and needs experimentalDecorators in tsconfig.json'
  : unknown;

/** Whether a key function accepts the arguments of the method. */
type FitsKey<Args extends unknown[], Target extends Lockable> = ((...args: Args) => void) extends (
  ...args: Parameters<Target>
) => void
  ? unknown
  : { readonly 'the key function takes other arguments than the method': never };

/** Whether a busy call returns what the method may return; unknown where the options do not say. */
type FitsBusy<Busy extends OnBusy, Target extends Lockable> = OnBusy extends Busy
  ? unknown
  : [Instead<Busy, Target>] extends [Answer<ReturnType<Target>>]
    ? unknown
    : { readonly 'onBusy answers with what the method does not return': never };

/** A skipped Observable completes without a value. */
type Instead<Busy extends OnBusy, Target extends Lockable> = Busy extends 'skip'
  ? ReturnType<Target> extends Observable<unknown>
    ? never
    : undefined
  : Busy extends (...args: never[]) => infer Result
    ? VoidAsUndefined<Answer<Result>>
    : never;

type Answer<Result> = Result extends Observable<infer Value> ? Value : Awaited<Result>;

type VoidAsUndefined<Value> = Value extends void ? undefined : Value;
