import { types } from 'node:util';
import { isObservable } from 'rxjs';
import { AbortListener, LockConfigurationError, type LockHandle, systemClock } from '../../core/index.js';
import { isObject } from '../../decorators/is-object.js';
import type { RequestScope } from '../requests/request-scope.js';
import { followIterator } from './followed-iterator.js';
import type { FollowedResult, FollowCallbacks } from './followed-result.js';
import { followObservable } from './followed-observable.js';
import { followResponse, followStream, followWebStream, isNodeStream, getFileStream } from './followed-stream.js';

/** Result of a locked method whose work goes on. The lock is held until `ended` resolves. */
export interface LockedResult extends Omit<FollowedResult, 'isUnread'> {
  readonly ended: Promise<void>;
}

interface LockedCall {
  readonly label: string;
  readonly locks: readonly LockHandle[];
  readonly whenReleased: () => Promise<unknown>;
  /** Whether an HTTP handler with `@Res()` without `passthrough` was called, which writes the response itself. */
  readonly writesResponse: boolean;
  /** Request that the call belongs to. */
  readonly request: RequestScope | undefined;
  readonly outlivesRequest: boolean;
  /**
   * Whether nothing waited for the request any more when the call began, so that its result may stay unread. Never true
   * with `outliveClient`, or under another lock.
   */
  readonly mayStayUnread: boolean;
  /** Returns the option `ttlMs` of the call. */
  readonly getTtlMs: () => number;
}

/**
 * Follows the work behind the result of a locked method. Returns `undefined` when there is none. The loss of a lock, or
 * the end of the request, ends the work with an error.
 * @throws LockConfigurationError with the option `returns`: the end of the work cannot be observed
 */
export function followLockedResult(result: unknown, call: LockedCall): LockedResult | undefined {
  if (!isObject(result) && typeof result !== 'function' && !call.writesResponse) return undefined;
  let onEnd = (): void => undefined;
  const ended = new Promise<void>((resolve) => (onEnd = resolve));
  const callAfterTtl = (callback: () => void): void => {
    const timer = systemClock.schedule(call.getTtlMs(), callback, { background: true });
    void ended.then(() => timer.cancel());
  };
  // The release must not depend on `onEnd` alone: a step of the work may wait for a client that has gone.
  const onClosing = (): void => callAfterTtl(onEnd);
  const { label, locks, whenReleased, writesResponse, request, outlivesRequest, mayStayUnread } = call;
  // The signal of a lock aborts, at the latest, when it is read.
  const cancelIfLost = (): void => locks.forEach(({ signal }) => void signal.aborted);
  const hasResponseOnly = result === undefined && writesResponse;
  const followedResult = hasResponseOnly
    ? { value: undefined, cancel: onEnd, isUnread: () => false }
    : followResult(result, label, { onEnd, onClosing, whenReleased, cancelIfLost });
  if (!followedResult) return undefined;
  const cancel = (reason: Error): void => {
    onClosing();
    followedResult.cancel(reason);
  };
  const cancelWithRequest = (): void => cancel(new Error('The request of this result is over'));
  if (mayStayUnread) callAfterTtl(() => followedResult.isUnread() && cancelWithRequest());
  // The listener is added at once, and removed when `ended` resolves.
  if (hasResponseOnly) void ended.then(request?.onResponseEnd(cancelWithRequest));
  else if (!outlivesRequest) void ended.then(request?.onResponseEndOrAbandonment(cancelWithRequest));
  for (const { signal } of locks) {
    const cancelOnLoss = (): void => cancel(signal.reason);
    if (signal.aborted) cancelOnLoss();
    else {
      const listener = new AbortListener(signal, cancelOnLoss);
      void ended.then(() => listener.end());
    }
  }
  return { value: followedResult.value, cancel, ended };
}

function followResult(result: unknown, label: string, callbacks: FollowCallbacks): FollowedResult | undefined {
  if (typeof result === 'function') throw createUnobservableError(label, 'a function');
  if (!isObject(result)) return undefined;
  if (isObservable(result)) return followObservable(result, callbacks);
  const stream = getFileStream(result) ?? result;
  if (isNodeStream(stream)) return followStream(result, stream, callbacks);
  if (result instanceof ReadableStream) return result.locked ? undefined : followWebStream(result, callbacks);
  if (result instanceof Response) return followResponse(result, callbacks);
  if (Symbol.asyncIterator in result) {
    if (!Object.isExtensible(result)) throw createUnobservableError(label, 'a frozen iterable');
    return followIterator(result, callbacks);
  }
  if (isSubscription(result)) throw createUnobservableError(label, 'a subscription');
  if (types.isGeneratorObject(result)) throw createUnobservableError(label, 'a synchronous generator');
  return undefined;
}

function isSubscription(value: object): boolean {
  return 'closed' in value && ['add', 'unsubscribe'].every((name) => typeof Reflect.get(value, name) === 'function');
}

function createUnobservableError(label: string, resultType: string): LockConfigurationError {
  return new LockConfigurationError(
    `${label} returned ${resultType}, whose work would outlive the lock unseen: return what that work results in`,
    'returns',
  );
}
