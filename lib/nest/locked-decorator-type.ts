import type { Observable } from 'rxjs';
import type { OnBusy } from './locked-options.js';

/** A lock takes time to get. Hence a locked method returns a promise or an Observable. */
export type Lockable = (...args: never[]) => Promise<unknown> | Observable<unknown>;

export interface LockedDecorator<Args extends unknown[] = [], Busy extends OnBusy = OnBusy> {
  <Owner extends object, Target extends Lockable>(
    target: Owner & FitsOwner<Owner>,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Target> & FitsKey<Args, Target> & FitsBusy<Busy, Target>,
  ): void;
  /** For `applyDecorators` only, which shows no method to check. */
  (this: '@Locked stands before a method of instances', target: object, name: string | symbol): void;
}

type FitsOwner<Owner> = Owner extends abstract new (...args: never[]) => unknown
  ? '@Locked stands before a method of instances'
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
