import type { Observable } from 'rxjs';
import type { AcquireOptions, LockTimeoutError } from '../../core/index.js';

/** Call that did not get its key, because another holder kept it. */
export interface BusyCall {
  /** Error that names the key and, where the backend knows it, the holder: for logs, not for clients. */
  readonly error: LockTimeoutError;
  readonly args: readonly unknown[];
}

/** Outcome of a call whose key stays held. */
export type OnBusy = 'throw' | 'skip' | ((call: BusyCall) => unknown);

/** Options of `@Locked`. A variable needs a type such as `LockedOptions<'skip'>` for the compiler to check `onBusy`. */
export interface LockedOptions<Busy extends OnBusy = OnBusy> extends AcquireOptions {
  /** Name of one of several backends. @default 'default' */
  backend?: string;
  /**
   * Outcome when the key stays held for `waitMs`. `throw`: the call throws the `LockTimeoutError`. `skip`: the call
   * resolves to `undefined`, or its Observable completes without a value. A function: its result is the call's result.
   * `skip` does not wait unless `waitMs` is set. Errors of the backend and of the method are thrown in every case. The
   * method's return type must allow for the outcome.
   * @default 'throw'
   */
  onBusy?: Busy;
}

/** Method that can be locked: it returns a promise or an Observable, because taking the lock is asynchronous. */
export type Lockable = (...args: never[]) => Promise<unknown> | Observable<unknown>;

export interface LockedDecorator<Args extends unknown[] = [], Busy extends OnBusy = OnBusy> {
  <Owner extends object, Target extends Lockable>(
    target: Owner & FitsOwner<Owner>,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Target> & FitsKey<Args, Target> & FitsBusy<Busy, Target>,
  ): void;
  /** Signature for `applyDecorators`, which passes no method type to check. */
  (
    this: '@Locked stands before a method of instances, and needs experimentalDecorators in tsconfig.json',
    target: object,
    name: string | symbol,
  ): void;
}

/** Type `unknown` for a method of instances; else a message. The target of a static method is a class. */
type FitsOwner<Owner> = Owner extends abstract new (...args: never[]) => unknown
  ? '@Locked stands before a method of instances, and needs experimentalDecorators in tsconfig.json'
  : unknown;

/** Type `unknown` where the key function accepts the arguments of the method; else a message. */
type FitsKey<Args extends unknown[], Target extends Lockable> = ((...args: Args) => void) extends (
  ...args: Parameters<Target>
) => void
  ? unknown
  : { readonly 'the key function takes other arguments than the method': never };

/**
 * Type `unknown` where the method's return type allows for the busy result; else a message. It is also `unknown` where
 * the type of the options does not tell `onBusy`.
 */
type FitsBusy<Busy extends OnBusy, Target extends Lockable> = OnBusy extends Busy
  ? unknown
  : [BusyResult<Busy, Target>] extends [ResultValue<ReturnType<Target>>]
    ? unknown
    : { readonly 'onBusy answers with what the method does not return': never };

/** Result of a call whose key stays held: `never` for a skipped Observable, which completes without a value. */
type BusyResult<Busy extends OnBusy, Target extends Lockable> = Busy extends 'skip'
  ? ReturnType<Target> extends Observable<unknown>
    ? never
    : undefined
  : Busy extends (...args: never[]) => infer Result
    ? VoidAsUndefined<ResultValue<Result>>
    : never;

type ResultValue<Result> = Result extends Observable<infer Value> ? Value : Awaited<Result>;

type VoidAsUndefined<Value> = Value extends void ? undefined : Value;
