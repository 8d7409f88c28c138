import { AsyncResource } from 'node:async_hooks';
import { AbortListener } from '../../core/index.js';
import { isMethod, type Method } from '../../decorators/declaration.js';
import { isObject } from '../../decorators/is-object.js';
import type { FollowedResult, FollowCallbacks } from './followed-result.js';

/** Some iterators break the protocol and resolve to `null`. */
type IterationResult = IteratorResult<unknown> | null;

interface OpenIterator {
  readonly iterator: object;
  /** The iterator's own `return`. */
  readonly returnMethod: Method | undefined;
  runningSteps: number;
  hasEnded: boolean;
}

/** The own `Symbol.asyncIterator` of objects whose property was overridden, because methods may return them again. */
const originalGetters = new WeakMap<object, unknown>();

/** Overrides methods of `result` instead of wrapping it, because callers may need other members of `result`. */
export function followIterator(result: object, callbacks: FollowCallbacks): FollowedResult {
  const iterators = new FollowedIterators(callbacks);
  const getIterator: unknown = originalGetters.get(result) ?? Reflect.get(result, Symbol.asyncIterator);
  const createIterator = (): unknown =>
    typeof getIterator === 'function' ? Reflect.apply(getIterator, result, []) : undefined;
  // The `next` of a database cursor is not the method of an iterator. Iterating over a cursor creates an iterator.
  if ('next' in result && createIterator() === result) iterators.follow(result);
  else {
    originalGetters.set(result, getIterator);
    overrideProperty(result, Symbol.asyncIterator, () => {
      iterators.assertNotEnded();
      const iterator = createIterator();
      if (isObject(iterator)) iterators.follow(iterator);
      return iterator;
    });
  }
  return { value: result, cancel: (reason) => iterators.cancel(reason) };
}

/** Iterators of one result. The work has ended when every iterator has ended and none of their steps runs. */
class FollowedIterators {
  readonly #asyncContext = new AsyncResource('LockedResult');
  readonly #cancellation = new AbortController();
  readonly #openIterators = new Set<OpenIterator>();
  #hasEnded = false;

  constructor(private readonly callbacks: FollowCallbacks) {}

  /** @throws Error after the end: the lock is released, and a further iterator would run without it */
  assertNotEnded(): void {
    this.#cancellation.signal.throwIfAborted();
    if (this.#hasEnded) throw new Error('The lock of this iterable is released: call the method again');
  }

  follow(iterator: object): void {
    const returnMethod: unknown = Reflect.get(iterator, 'return');
    const openIterator: OpenIterator = {
      iterator,
      returnMethod: isMethod(returnMethod) ? returnMethod : undefined,
      runningSteps: 0,
      hasEnded: false,
    };
    this.#openIterators.add(openIterator);
    for (const name of ['next', 'return', 'throw']) {
      const method: unknown = Reflect.get(iterator, name);
      if (!isMethod(method)) continue;
      const callMethod = async (...args: unknown[]): Promise<IterationResult> => {
        const iterationResult = await this.#runStep(openIterator, method, args);
        if (this.#hasEnded) await this.callbacks.whenReleased();
        return iterationResult;
      };
      overrideProperty(iterator, name, name === 'next' ? this.#rejectOnCancel(callMethod) : callMethod);
    }
  }

  /** Rejects pending and later calls of `next`, and closes the iterators. A generator closes after its current step. */
  cancel(reason: Error): void {
    if (this.#cancellation.signal.aborted) return;
    this.#cancellation.abort(reason);
    for (const openIterator of this.#openIterators) this.#close(openIterator);
    this.#endIfOver();
  }

  #close(openIterator: OpenIterator): void {
    const { returnMethod } = openIterator;
    openIterator.hasEnded = true;
    if (returnMethod) this.#runStep(openIterator, returnMethod, []).catch(() => undefined);
    else this.#removeIfOver(openIterator);
  }

  async #runStep(openIterator: OpenIterator, method: Method, args: readonly unknown[]): Promise<IterationResult> {
    openIterator.runningSteps += 1;
    try {
      const iterationResult = await this.#asyncContext.runInAsyncScope((): Promise<IterationResult> =>
        Reflect.apply(method, openIterator.iterator, args),
      );
      if (isLastResult(iterationResult, method === openIterator.returnMethod)) openIterator.hasEnded = true;
      return iterationResult;
    } catch (error) {
      openIterator.hasEnded = true;
      throw error;
    } finally {
      openIterator.runningSteps -= 1;
      this.#removeIfOver(openIterator);
    }
  }

  #removeIfOver(openIterator: OpenIterator): void {
    if (!openIterator.hasEnded || openIterator.runningSteps > 0) return;
    this.#openIterators.delete(openIterator);
    this.#endIfOver();
  }

  #endIfOver(): void {
    if (this.#openIterators.size > 0) return;
    this.#hasEnded = true;
    this.callbacks.onEnd();
  }

  #rejectOnCancel(callNext: (...args: unknown[]) => Promise<IterationResult>): typeof callNext {
    const { signal } = this.#cancellation;
    return (...args) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted();
        const listener = new AbortListener(signal, () => reject(signal.reason));
        callNext(...args)
          .then(resolve, reject)
          .finally(() => listener.end());
      });
  }
}

/** Returns whether the iterator gives no further result. Its consumer does not call it again after `return`. */
function isLastResult(iterationResult: IterationResult, isReturn: boolean): boolean {
  return isReturn || iterationResult === null || iterationResult.done === true;
}

function overrideProperty(target: object, name: string | symbol, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
