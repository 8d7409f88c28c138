import type { AsyncResource } from 'node:async_hooks';
import { isMethod, type Method } from '../../decorators/declaration.js';

/** Some iterators break the protocol and resolve to `null`. */
type IterationResult = IteratorResult<unknown> | null;

/** Call of a locked method whose result has the iterator. */
export interface IteratorCall {
  readonly asyncContext: AsyncResource;
  onIteratorEnd(iterator: FollowedIterator): void;
  waitForRelease(): Promise<void>;
}

const followedIterators = new WeakMap<object, FollowedIterator>();

/** Iterator whose methods are overridden. It has ended after its last result, unless another step of it still runs. */
export class FollowedIterator {
  readonly #calls = new Set<IteratorCall>();
  #isUnread = true;
  readonly #returnMethod: Method | undefined;
  readonly #rejectCallbacks = new Set<(reason: Error) => void>();
  #cancellation: Error | undefined;
  #runningSteps = 0;
  #hasLastResult = false;
  #hasEnded = false;

  private constructor(private readonly iterator: object) {
    const [next, returnMethod, throwMethod] = ['next', 'return', 'throw'].map((name) => getMethod(iterator, name));
    this.#returnMethod = returnMethod;
    if (next) overrideProperty(iterator, 'next', (...args: unknown[]) => this.#next(next, args));
    for (const [name, method] of Object.entries({ return: returnMethod, throw: throwMethod }))
      if (method) overrideProperty(iterator, name, (...args: unknown[]) => this.#callMethod(method, args));
  }

  static of(iterator: object): FollowedIterator {
    const followedIterator = followedIterators.get(iterator) ?? new FollowedIterator(iterator);
    followedIterators.set(iterator, followedIterator);
    return followedIterator;
  }

  get isUnread(): boolean {
    return this.#isUnread;
  }

  /** Adds a call that has returned the iterator, perhaps again after its end. */
  addCall(call: IteratorCall): void {
    if (this.#hasEnded) {
      this.#calls.clear();
      this.#cancellation = undefined;
      this.#runningSteps = 0;
      [this.#isUnread, this.#hasLastResult, this.#hasEnded] = [true, false, false];
    }
    this.#calls.add(call);
  }

  /** Rejects pending and later calls of `next`, and closes the iterator. A generator closes after its current step. */
  cancel(reason: Error): void {
    if (this.#cancellation) return;
    this.#cancellation = reason;
    for (const reject of this.#rejectCallbacks) reject(reason);
    this.#hasLastResult = true;
    if (this.#returnMethod) this.#runStep(this.#returnMethod, []).catch(() => undefined);
    else this.#endIfOver();
  }

  /** Rejects at once when the iterator is cancelled, although the step may still run. */
  #next(next: Method, args: readonly unknown[]): Promise<IterationResult> {
    this.#isUnread = false;
    // A further step would run without the lock.
    if (this.#hasEnded && !this.#cancellation) return Promise.resolve({ done: true, value: undefined });
    const result = new Promise<IterationResult>((resolve, reject) => {
      if (this.#cancellation) throw this.#cancellation;
      const rejectOnCancel = (reason: Error): void => {
        // A consumer that reads ahead awaits this promise later.
        result.catch(() => undefined);
        reject(reason);
      };
      this.#rejectCallbacks.add(rejectOnCancel);
      this.#callMethod(next, args)
        .then(resolve, reject)
        .finally(() => this.#rejectCallbacks.delete(rejectOnCancel));
    });
    return result;
  }

  async #callMethod(method: Method, args: readonly unknown[]): Promise<IterationResult> {
    const iterationResult = await this.#runStep(method, args);
    if (this.#hasEnded) await Promise.all([...this.#calls].map((call) => call.waitForRelease()));
    return iterationResult;
  }

  async #runStep(method: Method, args: readonly unknown[]): Promise<IterationResult> {
    // The call of the innermost method comes first. Its context has the locks of the outer ones, too.
    const [innermostCall] = this.#calls;
    const step = (): Promise<IterationResult> => Reflect.apply(method, this.iterator, args);
    const isReturn = method === this.#returnMethod;
    this.#runningSteps += 1;
    try {
      const iterationResult = await (innermostCall ? innermostCall.asyncContext.runInAsyncScope(step) : step());
      if (isReturn || iterationResult === null || iterationResult.done === true) this.#hasLastResult = true;
      return iterationResult;
    } catch (error) {
      this.#hasLastResult = true;
      throw error;
    } finally {
      // A generator answers `return` after its other steps. Other iterators may leave a pending `next` unanswered.
      this.#runningSteps = isReturn ? 0 : Math.max(0, this.#runningSteps - 1);
      this.#endIfOver();
    }
  }

  #endIfOver(): void {
    if (!this.#hasLastResult || this.#runningSteps > 0 || this.#hasEnded) return;
    this.#hasEnded = true;
    for (const call of this.#calls) call.onIteratorEnd(this);
  }
}

function getMethod(target: object, name: string): Method | undefined {
  const method: unknown = Reflect.get(target, name);
  return isMethod(method) ? method : undefined;
}

export function overrideProperty(target: object, name: string | symbol, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
