import { AsyncResource } from 'node:async_hooks';
import { isLockError } from '../../core/index.js';
import { isMethod, type Method } from '../../decorators/declaration.js';
import { isObject } from '../../decorators/is-object.js';
import type { FollowedResult, FollowCallbacks } from './followed-result.js';

/** Method of a result or an iterator that was overridden for one call of a locked method. */
interface Override {
  /** Method that the override replaces, or `undefined` if there was none. */
  readonly original: Method | undefined;
  readonly iteration: Iteration;
}

const overrides = new WeakMap<Method, Override>();

/** Overrides methods of `result` instead of wrapping it, because callers may need other members of `result`. */
export function followIterator(result: object, callbacks: FollowCallbacks): FollowedResult {
  const iteration = new Iteration(callbacks);
  const getIterator = findOriginal(result, Symbol.asyncIterator);
  const createIterator = (): unknown => {
    const original = skipEndedOverrides(getIterator);
    return original ? Reflect.apply(original, result, []) : undefined;
  };
  // An object with `next` is an iterator, or a database cursor, which creates an iterator.
  const hasNext = 'next' in result;
  if (hasNext && createIterator() === result) {
    iteration.follow(result);
    const beginAgain = (): unknown => {
      iteration.throwIfReleased();
      return createIterator();
    };
    override(result, Symbol.asyncIterator, { original: getIterator, iteration }, beginAgain);
  } else if (getIterator) {
    const createFollowed = (): unknown => {
      const iterator = createIterator();
      if (isObject(iterator)) iteration.follow(iterator);
      return iterator;
    };
    override(result, Symbol.asyncIterator, { original: getIterator, iteration }, createFollowed);
    // Calls of a cursor's own `next` are not observed, so a cursor never counts as unread.
    iteration.hasBegun = hasNext;
  }
  return {
    value: result,
    cancel: (reason) => iteration.cancel(reason),
    isUnread: () => !iteration.hasBegun,
  };
}

/**
 * Returns a method of `target` below the overrides of ended calls. A locked method may return the same object in every
 * call.
 */
function findOriginal(target: object, name: string | symbol): Method | undefined {
  const method: unknown = Reflect.get(target, name);
  return isMethod(method) ? skipEndedOverrides(method) : undefined;
}

function skipEndedOverrides(method: Method | undefined): Method | undefined {
  const replaced = method && overrides.get(method);
  return replaced?.iteration.hasEnded === true ? skipEndedOverrides(replaced.original) : method;
}

function override(target: object, name: string | symbol, replaced: Override, value: Method): void {
  overrides.set(value, replaced);
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}

/** One iterator of an iteration. An iterator fails when one of its steps does. */
interface FollowedIterator {
  state: 'new' | 'open' | 'done' | 'failed';
  /** Calls the iterator's own `return`, if it has one. */
  close?: () => Promise<unknown>;
}

/** Work behind one result. It ends when each iterator that has begun has ended. Iterators that begin later are refused. */
class Iteration {
  hasBegun = false;
  hasEnded = false;
  readonly #asyncContext = new AsyncResource('LockedResult');
  /** Iterators that have not ended. */
  readonly #iterators = new Set<FollowedIterator>();
  /** Iterators that have begun and not ended. */
  readonly #openIterators = new Set<FollowedIterator>();
  #cancellation: Error | undefined;
  #runningSteps = 0;

  constructor(private readonly callbacks: FollowCallbacks) {}

  follow(iterator: object): void {
    const followed: FollowedIterator = { state: 'new' };
    for (const name of ['next', 'return', 'throw']) {
      const original = findOriginal(iterator, name);
      // Without `return`, a loop that is left early would not end the iterator.
      if (!original && name !== 'return') continue;
      const call = (args: unknown[]): unknown =>
        original
          ? this.#asyncContext.runInAsyncScope(() => Reflect.apply(original, iterator, args))
          : { done: true, value: args[0] };
      const runStep = (...args: unknown[]): Promise<unknown> => this.#runStep(followed, name, () => call(args));
      override(iterator, name, { original, iteration: this }, runStep);
      if (name === 'return' && original) followed.close = () => runStep();
    }
    if (!this.hasEnded) this.#iterators.add(followed);
  }

  /** Closes the iterators. A generator closes after its running step, whose consumer still gets the step's result. */
  cancel(reason: Error): void {
    this.#cancellation = reason;
    for (const { close } of this.#iterators) void close?.().catch(() => undefined);
    if (this.#runningSteps === 0) this.#end();
  }

  throwIfReleased(): void {
    if (this.hasEnded && !this.#cancellation)
      throw new Error('The lock of this iterable is released: call the method again');
  }

  async #runStep(followed: FollowedIterator, name: string, call: () => unknown): Promise<unknown> {
    this.hasBegun = true;
    const hasIteratorEnded = followed.state === 'done' || followed.state === 'failed';
    if (name === 'next') {
      if (this.#cancellation) throw this.#cancellation;
      // The own `next` of an iterator that has ended might begin again, without the lock.
      if (followed.state === 'done') return { done: true, value: undefined };
      if (followed.state === 'failed') throw new Error('A step of this iterable has failed: call the method again');
      this.throwIfReleased();
    } else if (hasIteratorEnded || this.hasEnded) {
      const result = await call();
      this.#throwIfLost();
      return result;
    }
    followed.state = 'open';
    this.#openIterators.add(followed);
    this.#runningSteps += 1;
    let result: unknown;
    try {
      result = await call();
    } catch (error) {
      this.#onStepEnd(followed, 'failed');
      throw error;
    }
    // Some iterators break the protocol, and resolve to no object.
    const isLast = !isObject(result) || Boolean(Reflect.get(result, 'done')) || name === 'return';
    this.#onStepEnd(followed, isLast ? 'done' : 'open');
    if (isLast) {
      this.#throwIfLost();
      if (this.hasEnded) await this.callbacks.whenReleased();
    }
    return result;
  }

  /** @throws LockLostError when the loss of a lock has ended the work */
  #throwIfLost(): void {
    if (isLockError(this.#cancellation, 'LOCK_LOST')) throw this.#cancellation;
  }

  #onStepEnd(followed: FollowedIterator, state: 'open' | 'done' | 'failed'): void {
    this.#runningSteps -= 1;
    // A step may still be running when `return` ends its iterator.
    if (state !== 'open' && followed.state === 'open') {
      followed.state = state;
      this.#iterators.delete(followed);
      this.#openIterators.delete(followed);
    }
    if (this.#cancellation ? this.#runningSteps === 0 : this.#openIterators.size === 0) this.#end();
  }

  #end(): void {
    this.hasEnded = true;
    this.#iterators.clear();
    this.callbacks.onEnd();
  }
}
