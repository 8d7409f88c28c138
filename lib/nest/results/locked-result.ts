import { isObservable } from 'rxjs';
import { LockConfigurationError, type LockHandle } from '../../core/index.js';
import { isObject } from '../../decorators/is-object.js';
import { onceOver } from '../requests/raw-response.js';
import { currentRequest } from '../requests/request-scope.js';
import { followIterator } from './followed-iterator.js';
import type { FollowedResult, Follower } from './followed-result.js';
import { followObservable } from './followed-observable.js';
import { followResponse, followStream, followWebStream, isNodeStream, streamOfFile } from './followed-stream.js';

export interface LockedResult extends FollowedResult {
  /** Resolves when the work behind the value has ended, or its request is over. */
  readonly ended: Promise<void>;
}

interface LockedCall {
  readonly label: string;
  readonly locks: readonly LockHandle[];
  readonly whenReleased: () => Promise<unknown>;
  /** Whether the method writes the response itself, and returns nothing. */
  readonly writesResponse: boolean;
  /** Whether the work goes on when its request is over. */
  readonly outlivesRequest: boolean;
}

/**
 * Returns the work behind what a method returned, and its promise resolved to; `undefined` where that is a whole value.
 * The loss of a lock ends that work.
 * @throws LockConfigurationError with the option `returns`: nobody can tell when the work ends
 */
export function lockedResult(result: unknown, call: LockedCall): LockedResult | undefined {
  if (!isObject(result) && typeof result !== 'function' && !call.writesResponse) return undefined;
  let onEnd = (): void => undefined;
  const ended = new Promise<void>((resolve) => (onEnd = resolve));
  const { label, locks, whenReleased, writesResponse, outlivesRequest } = call;
  const isLeftToResponse = result === undefined && writesResponse;
  const followed = isLeftToResponse
    ? { value: undefined, cancel: () => undefined }
    : followResult(result, label, { onEnd, whenReleased });
  if (!followed) return undefined;
  const cancel = (reason: Error): void => {
    followed.cancel(reason);
    onEnd();
  };
  const response = outlivesRequest && !isLeftToResponse ? undefined : currentRequest()?.response;
  const stopWatching = response && onceOver(response, () => cancel(new Error('The request of this result is over')));
  for (const { signal } of locks) {
    const cancelLost = (): void => cancel(signal.reason);
    if (signal.aborted) cancelLost();
    signal.addEventListener('abort', cancelLost);
    void ended.then(() => signal.removeEventListener('abort', cancelLost));
  }
  void ended.then(stopWatching);
  return { value: followed.value, cancel, ended };
}

function followResult(result: unknown, label: string, follower: Follower): FollowedResult | undefined {
  if (typeof result === 'function') throw refused(label, 'a function');
  if (!isObject(result)) return undefined;
  if (isObservable(result)) return followObservable(result, follower);
  const stream = streamOfFile(result) ?? result;
  if (isNodeStream(stream)) return followStream(result, stream, follower);
  if (result instanceof ReadableStream) return followWebStream(result, follower);
  if (result instanceof Response) return followResponse(result, follower);
  if (Symbol.asyncIterator in result) {
    if (!Object.isExtensible(result)) throw refused(label, 'a frozen iterable');
    return followIterator(result, follower);
  }
  if (isSubscription(result)) throw refused(label, 'a subscription');
  return undefined;
}

function isSubscription(value: object): boolean {
  return 'closed' in value && ['add', 'unsubscribe'].every((name) => typeof Reflect.get(value, name) === 'function');
}

function refused(label: string, what: string): LockConfigurationError {
  return new LockConfigurationError(
    `${label} returned ${what}, whose work would outlive the lock unseen: return what that work results in`,
    'returns',
  );
}
