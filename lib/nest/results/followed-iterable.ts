import { AsyncResource } from 'node:async_hooks';
import { isMethod, type Method } from '../../decorators/declaration.js';
import { isObject } from '../../decorators/is-object.js';
import { FollowedIterator, type IteratorCall, overrideProperty } from './followed-iterator.js';
import type { FollowedResult, FollowCallbacks } from './followed-result.js';

interface FollowedIterable {
  readonly getIterator: Method;
  /** Calls whose locks last. A method may return the result of another one, or one object several times. */
  readonly openCalls: Set<IteratedCall>;
  cancellation: Error | undefined;
}

const followedIterables = new WeakMap<object, FollowedIterable>();

/** Overrides methods of `result` instead of wrapping it, because callers may need other members of `result`. */
export function followIterable(result: object, callbacks: FollowCallbacks): FollowedResult {
  const call = new IteratedCall(callbacks);
  const iterable = followedIterables.get(result);
  const getIterator: unknown = iterable ? iterable.getIterator : Reflect.get(result, Symbol.asyncIterator);
  // The `next` of a database cursor is not the method of an iterator. Iterating over a cursor creates an iterator.
  if (isMethod(getIterator) && 'next' in result && Reflect.apply(getIterator, result, []) === result)
    call.follow(FollowedIterator.of(result));
  else if (isMethod(getIterator)) call.followIterable(iterable ?? overrideGetter(result, getIterator));
  return { value: result, cancel: (reason) => call.cancel(reason), isUnread: () => call.isUnread };
}

/** Call of a locked method. Its work has ended when each iterator of its result has. */
class IteratedCall implements IteratorCall {
  readonly asyncContext = new AsyncResource('LockedResult');
  readonly #iterators = new Set<FollowedIterator>();
  #iterable: FollowedIterable | undefined;
  #hasEnded = false;

  constructor(private readonly callbacks: FollowCallbacks) {}

  get isUnread(): boolean {
    return [...this.#iterators].every((iterator) => iterator.isUnread);
  }

  follow(iterator: FollowedIterator): void {
    this.#iterators.add(iterator);
    iterator.addCall(this);
  }

  followIterable(iterable: FollowedIterable): void {
    this.#iterable = iterable;
    iterable.openCalls.add(this);
    iterable.cancellation = undefined;
  }

  onIteratorEnd(iterator: FollowedIterator): void {
    this.#iterators.delete(iterator);
    if (this.#iterators.size === 0) this.#end();
  }

  /** Resolves when the lock is released, if the work has ended. Rejects when the lock was lost. */
  async waitForRelease(): Promise<void> {
    if (this.#hasEnded) await this.callbacks.whenReleased();
  }

  cancel(reason: Error): void {
    if (this.#iterable) this.#iterable.cancellation = reason;
    this.#iterable?.openCalls.delete(this);
    if (this.#iterators.size === 0) this.#end();
    for (const iterator of this.#iterators) iterator.cancel(reason);
  }

  #end(): void {
    this.#hasEnded = true;
    this.#iterable?.openCalls.delete(this);
    this.callbacks.onEnd();
  }
}

/** Overrides the getter of iterators, so that each open call follows them. */
function overrideGetter(result: object, getIterator: Method): FollowedIterable {
  const iterable: FollowedIterable = { getIterator, openCalls: new Set(), cancellation: undefined };
  followedIterables.set(result, iterable);
  overrideProperty(result, Symbol.asyncIterator, () => {
    const { openCalls, cancellation } = iterable;
    // A further iterator would run without the lock.
    if (openCalls.size === 0)
      throw cancellation ?? new Error('The lock of this iterable is released: call the method again');
    const iterator: unknown = Reflect.apply(getIterator, result, []);
    if (isObject(iterator)) for (const call of openCalls) call.follow(FollowedIterator.of(iterator));
    return iterator;
  });
  return iterable;
}
