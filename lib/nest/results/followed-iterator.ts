import { AsyncResource } from 'node:async_hooks';
import { isObject } from '../../decorators/is-object.js';
import type { FollowedResult, Follower } from './followed-result.js';

type Step = IteratorResult<unknown>;

/** Watches the methods of the object itself, which may have others that its callers need. */
export function followIterator(result: object, follower: Follower): FollowedResult {
  const lost = new AbortController();
  const callTree = new AsyncResource('LockedResult');
  const watch = (iterator: object): void => watchSteps(iterator, follower, callTree, lost.signal);
  if ('next' in result) watch(result);
  else {
    const open: unknown = Reflect.get(result, Symbol.asyncIterator);
    override(result, Symbol.asyncIterator, () => {
      const iterator: unknown = typeof open === 'function' ? Reflect.apply(open, result, []) : undefined;
      if (isObject(iterator)) watch(iterator);
      return iterator;
    });
  }
  return { value: result, cancel: (reason) => lost.abort(reason) };
}

function watchSteps(
  iterator: object,
  { onEnd, whenReleased }: Follower,
  callTree: AsyncResource,
  lost: AbortSignal,
): void {
  for (const name of ['next', 'return', 'throw']) {
    const method: unknown = Reflect.get(iterator, name);
    if (typeof method !== 'function') continue;
    override(iterator, name, async (...args: unknown[]): Promise<Step> => {
      try {
        if (name === 'next') lost.throwIfAborted();
        const step = await callTree.runInAsyncScope((): Promise<Step> => Reflect.apply(method, iterator, args));
        if (!step.done && name !== 'return') return step;
        onEnd();
        await whenReleased();
        return step;
      } catch (error) {
        onEnd();
        throw error;
      }
    });
  }
}

function override(target: object, name: string | symbol, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
