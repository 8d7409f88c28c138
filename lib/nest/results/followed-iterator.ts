import { AsyncResource } from 'node:async_hooks';
import { isMethod, type Method } from '../../decorators/declaration.js';
import { isObject } from '../../decorators/is-object.js';
import type { FollowedResult, FollowCallbacks } from './followed-result.js';

/** Some iterators break the protocol and resolve to `null`. */
type IterationResult = IteratorResult<unknown> | null;

/** Override of `Symbol.asyncIterator` for one call of a locked method. */
interface GetterOverride {
  /** Method that the override replaces. */
  readonly getIterator: Method;
  readonly iteration: Iteration;
}

const getterOverrides = new WeakMap<object, GetterOverride>();

/** Overrides methods of `result` instead of wrapping it, because callers may need other members of `result`. */
export function followIterator(result: object, callbacks: FollowCallbacks): FollowedResult {
  const iteration = new Iteration(callbacks);
  const getIterator = skipEndedOverrides(result);
  const createIterator = (): unknown => (getIterator ? Reflect.apply(getIterator, result, []) : undefined);
  // An object with `next` is an iterator, or a database cursor, which creates an iterator.
  const hasNext = 'next' in result;
  if (hasNext && createIterator() === result) iteration.follow(result);
  else if (getIterator) {
    const override = (): unknown => {
      const iterator = createIterator();
      if (isObject(iterator)) iteration.follow(iterator);
      return iterator;
    };
    getterOverrides.set(override, { getIterator, iteration });
    overrideProperty(result, Symbol.asyncIterator, override);
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
 * Returns the `Symbol.asyncIterator` method of `result` below the overrides of ended calls. A locked method may return
 * the same object in every call.
 */
function skipEndedOverrides(result: object): Method | undefined {
  let getIterator: unknown = Reflect.get(result, Symbol.asyncIterator);
  for (
    let override = isMethod(getIterator) ? getterOverrides.get(getIterator) : undefined;
    override?.iteration.hasEnded === true;
    override = getterOverrides.get(override.getIterator)
  )
    getIterator = override.getIterator;
  return isMethod(getIterator) ? getIterator : undefined;
}

/** Work behind one result. It ends when each iterator that has begun has ended. Iterators that begin later are refused. */
class Iteration {
  hasBegun = false;
  hasEnded = false;
  readonly #asyncContext = new AsyncResource('LockedResult');
  /** Own `return` of each iterator, called without arguments. */
  readonly #closeCallbacks = new Set<() => Promise<IterationResult>>();
  /** Iterators that have begun and not ended. */
  readonly #openIterators = new Set<object>();
  readonly #endedIterators = new WeakSet<object>();
  #cancellation: Error | undefined;
  #runningSteps = 0;

  constructor(private readonly callbacks: FollowCallbacks) {}

  follow(iterator: object): void {
    for (const name of ['next', 'return', 'throw']) {
      const method: unknown = Reflect.get(iterator, name);
      if (!isMethod(method)) continue;
      const runStep = (...args: unknown[]): Promise<IterationResult> =>
        this.#runStep(iterator, name, () =>
          this.#asyncContext.runInAsyncScope(() => Reflect.apply(method, iterator, args)),
        );
      overrideProperty(iterator, name, runStep);
      if (name === 'return') this.#closeCallbacks.add(() => runStep());
    }
  }

  /** Closes the iterators. A generator closes after its running step, whose consumer still gets the step's result. */
  cancel(reason: Error): void {
    this.#cancellation = reason;
    for (const close of this.#closeCallbacks) void close().catch(() => undefined);
    if (this.#runningSteps === 0) this.#end();
  }

  async #runStep(
    iterator: object,
    name: string,
    call: () => IterationResult | Promise<IterationResult>,
  ): Promise<IterationResult> {
    this.hasBegun = true;
    if (name === 'next' && this.#cancellation) throw this.#cancellation;
    if (this.#endedIterators.has(iterator)) return call();
    if (name === 'next' && this.hasEnded)
      throw new Error('The lock of this iterable is released: call the method again');
    this.#openIterators.add(iterator);
    this.#runningSteps += 1;
    let iterationResult: IterationResult;
    try {
      iterationResult = await call();
    } catch (error) {
      this.#onStepEnd(iterator, true);
      throw error;
    }
    const isLast = iterationResult === null || iterationResult.done === true || name === 'return';
    this.#onStepEnd(iterator, isLast);
    if (isLast && this.hasEnded) await this.callbacks.whenReleased();
    return iterationResult;
  }

  #onStepEnd(iterator: object, isLast: boolean): void {
    this.#runningSteps -= 1;
    if (isLast) {
      this.#openIterators.delete(iterator);
      this.#endedIterators.add(iterator);
    }
    if (this.#cancellation ? this.#runningSteps === 0 : this.#openIterators.size === 0) this.#end();
  }

  #end(): void {
    this.hasEnded = true;
    this.#closeCallbacks.clear();
    this.callbacks.onEnd();
  }
}

function overrideProperty(target: object, name: string | symbol, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
