import { AsyncResource } from 'node:async_hooks';
import { isObject } from '../../decorators/is-object.js';
import type { FollowedResult, FollowCallbacks } from './followed-result.js';

/** Some iterators break the protocol and resolve to `null`. */
type IterationResult = IteratorResult<unknown> | null;

/** Overrides methods of `result` instead of wrapping it, because callers may need other members of `result`. */
export function followIterator(result: object, callbacks: FollowCallbacks): FollowedResult {
  const cancellation = new AbortController();
  const asyncContext = new AsyncResource('LockedResult');
  const follow = (iterator: object): void => overrideMethods(iterator, callbacks, asyncContext, cancellation.signal);
  const getIterator: unknown = Reflect.get(result, Symbol.asyncIterator);
  const createIterator = (): unknown =>
    typeof getIterator === 'function' ? Reflect.apply(getIterator, result, []) : undefined;
  // The `next` of a database cursor is not the method of an iterator. Iterating over a cursor creates an iterator.
  if ('next' in result && createIterator() === result) follow(result);
  else {
    overrideProperty(result, Symbol.asyncIterator, () => {
      const iterator = createIterator();
      if (isObject(iterator)) follow(iterator);
      return iterator;
    });
  }
  return { value: result, cancel: (reason) => cancellation.abort(reason) };
}

function overrideMethods(
  iterator: object,
  { onEnd, whenReleased }: FollowCallbacks,
  asyncContext: AsyncResource,
  cancelSignal: AbortSignal,
): void {
  for (const name of ['next', 'return', 'throw']) {
    const method: unknown = Reflect.get(iterator, name);
    if (typeof method !== 'function') continue;
    overrideProperty(iterator, name, async (...args: unknown[]): Promise<IterationResult> => {
      try {
        if (name === 'next') cancelSignal.throwIfAborted();
        const iterationResult = await asyncContext.runInAsyncScope((): Promise<IterationResult> =>
          Reflect.apply(method, iterator, args),
        );
        if (iterationResult !== null && !iterationResult.done && name !== 'return') return iterationResult;
        onEnd();
        await whenReleased();
        return iterationResult;
      } catch (error) {
        onEnd();
        throw error;
      }
    });
  }
}

function overrideProperty(target: object, name: string | symbol, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
