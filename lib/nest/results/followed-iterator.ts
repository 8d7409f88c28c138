import { AsyncResource } from 'node:async_hooks';
import { types } from 'node:util';
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
  const getIterator = findOriginal(result, Symbol.asyncIterator, isOverOrBegun);
  const createIterator = (): unknown => {
    const original = skipOverrides(getIterator, isOverOrBegun);
    return original ? Reflect.apply(original, result, []) : undefined;
  };
  // An object with `next` is an iterator, or a database cursor, which creates an iterator.
  const hasNext = 'next' in result;
  const isIterator = hasNext && createIterator() === result;
  if (isIterator) iteration.follow(result);
  const isGenerator = types.isGeneratorObject(result);
  const createFollowed = (): unknown => {
    const { refusal } = iteration;
    // A generator cannot begin again. Any other iterator might run without the lock.
    if (refusal && !isGenerator) return createRefusedIterator(refusal);
    return isIterator ? createIterator() : iteration.begin(createIterator);
  };
  if (getIterator) override(result, Symbol.asyncIterator, { original: getIterator, iteration }, createFollowed);
  return {
    value: result,
    cancel: (reason) => iteration.cancel(reason),
    // Calls of a cursor's own `next` are not observed, so a cursor never counts as unread.
    isUnread: () => !iteration.hasBegun && (isIterator || !hasNext),
  };
}

function createRefusedIterator(refusal: Error): AsyncIterableIterator<never> {
  const next = (): Promise<never> => Promise.reject(refusal);
  const iterator = { next, [Symbol.asyncIterator]: () => iterator };
  return iterator;
}

type OverrideCondition = (iteration: Iteration) => boolean;

const isOver: OverrideCondition = (iteration) => iteration.isOver;

/** Condition of the overrides that have no part in a new iterator, if several calls returned the same object. */
const isOverOrBegun: OverrideCondition = (iteration) => iteration.isOver || iteration.hasBegun;

/** Returns a method of `target` below the overrides of the calls that `isSkipped` names. */
function findOriginal(target: object, name: string | symbol, isSkipped: OverrideCondition): Method | undefined {
  const method: unknown = Reflect.get(target, name);
  return isMethod(method) ? skipOverrides(method, isSkipped) : undefined;
}

function skipOverrides(method: Method | undefined, isSkipped: OverrideCondition): Method | undefined {
  let original = method;
  for (;;) {
    const replaced = original && overrides.get(original);
    if (!replaced || !isSkipped(replaced.iteration)) return original;
    ({ original } = replaced);
  }
}

function override(target: object, name: string | symbol, replaced: Override, value: Method): void {
  overrides.set(value, replaced);
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}

/** One iterator of an iteration. */
interface FollowedIterator {
  readonly isGenerator: boolean;
  /** Set by the last step, or by one that failed. */
  ending?: 'done' | { readonly failure: unknown };
  runningSteps: number;
  /** Calls the iterator's own `return`, if it has one. */
  close?: () => Promise<unknown>;
}

interface Step {
  readonly isNext: boolean;
  /** Whether the step is the iterator's own `return`, which may end other steps that run. */
  readonly isClosing: boolean;
  run(): unknown;
}

/** Work behind one result. It ends when each iterator that has begun has ended. Iterators that begin later are refused. */
class Iteration {
  hasBegun = false;
  #hasEnded = false;
  readonly #asyncContext = new AsyncResource('LockedResult');
  /** Iterators that have not ended. */
  readonly #iterators = new Set<FollowedIterator>();
  /** Iterators that have begun and not ended. */
  readonly #openIterators = new Set<FollowedIterator>();
  #cancellation: Error | undefined;
  #runningSteps = 0;

  constructor(private readonly callbacks: FollowCallbacks) {}

  get isOver(): boolean {
    return this.#hasEnded || this.#cancellation !== undefined;
  }

  /** Error for a step that would run without the lock, or `undefined` while the iteration goes on. */
  get refusal(): Error | undefined {
    if (this.#cancellation || !this.#hasEnded) return this.#cancellation;
    return new Error(
      'The lock of this iterable is released: call the method again, and return a new iterable from each call',
    );
  }

  /** Returns the iterator that `createIterator` makes. After an error the iteration ends, unless another goes on. */
  begin(createIterator: () => unknown): unknown {
    try {
      const iterator = createIterator();
      if (isObject(iterator)) this.follow(iterator);
      return iterator;
    } catch (error) {
      if (this.#openIterators.size === 0) this.#end();
      throw error;
    }
  }

  follow(iterator: object): void {
    const nextMethod: unknown = Reflect.get(iterator, 'next');
    // An iterable may return one iterator many times.
    if (isMethod(nextMethod) && overrides.get(nextMethod)?.iteration === this) return;
    const followed: FollowedIterator = { isGenerator: types.isGeneratorObject(iterator), runningSteps: 0 };
    for (const name of ['next', 'return', 'throw', Symbol.asyncDispose]) {
      const original = findOriginal(iterator, name, isOver);
      // Without `return`, a loop that is left early would not end the iterator.
      if (!original && name !== 'return') continue;
      const call = (args: unknown[]): unknown => {
        const method = skipOverrides(original, isOver);
        if (!method) return { done: true, value: args[0] };
        return this.#asyncContext.runInAsyncScope(() => Reflect.apply(method, iterator, args));
      };
      const isClosing = original !== undefined && (name === 'return' || name === Symbol.asyncDispose);
      const runStep = (...args: unknown[]): Promise<unknown> =>
        this.#runStep(followed, { isNext: name === 'next', isClosing, run: () => call(args) });
      override(iterator, name, { original, iteration: this }, runStep);
      if (name === 'return' && original) followed.close = () => runStep();
    }
    this.#iterators.add(followed);
  }

  /** Closes the iterators. A generator closes after its running step, whose consumer still gets the step's result. */
  cancel(reason: Error): void {
    // The end of the request may follow the loss of a lock.
    if (!isLockError(this.#cancellation, 'LOCK_LOST')) this.#cancellation = reason;
    for (const { close } of this.#iterators) void close?.().catch(() => undefined);
    if (this.#runningSteps === 0) this.#end();
  }

  async #runStep(followed: FollowedIterator, step: Step): Promise<unknown> {
    this.hasBegun = true;
    if (!this.#hasEnded) this.callbacks.cancelIfLost();
    const { ending, isGenerator } = followed;
    if (step.isNext) {
      if (this.#cancellation) throw this.#cancellation;
      // The own `next` of an iterator that has ended might begin again, without the lock.
      if (ending === 'done' || (ending && isGenerator)) return { done: true, value: undefined };
      if (ending) throw ending.failure;
      const { refusal } = this;
      if (refusal) throw refusal;
    } else if (ending || this.#hasEnded) {
      const result = await step.run();
      this.#throwIfLost();
      return result;
    }
    this.#openIterators.add(followed);
    followed.runningSteps += 1;
    this.#runningSteps += 1;
    let result: unknown;
    try {
      result = await step.run();
    } catch (failure) {
      this.#onStepEnd(followed, step, { failure });
      if (this.#hasEnded) await this.callbacks.whenReleased().catch(() => undefined);
      throw failure;
    }
    // Some iterators break the protocol, and resolve to no object.
    const isLast = step.isClosing || !isObject(result) || Boolean(Reflect.get(result, 'done'));
    this.#onStepEnd(followed, step, isLast ? 'done' : undefined);
    if (isLast) {
      this.#throwIfLost();
      if (this.#hasEnded) await this.callbacks.whenReleased();
    }
    return result;
  }

  /** @throws LockLostError when the loss of a lock has ended the work */
  #throwIfLost(): void {
    if (isLockError(this.#cancellation, 'LOCK_LOST')) throw this.#cancellation;
  }

  #onStepEnd(followed: FollowedIterator, { isClosing }: Step, ending: FollowedIterator['ending']): void {
    followed.runningSteps -= 1;
    this.#runningSteps -= 1;
    if (ending) {
      followed.ending ??= ending;
      this.#iterators.delete(followed);
    }
    if (followed.ending && (isClosing || followed.runningSteps === 0)) this.#openIterators.delete(followed);
    if (this.#cancellation ? this.#runningSteps === 0 : this.#openIterators.size === 0) this.#end();
  }

  #end(): void {
    this.#hasEnded = true;
    this.#iterators.clear();
    this.callbacks.onEnd();
  }
}
