import { Observable } from 'rxjs';
import { AbortListener, LockConfigurationError, type LockHandle, systemClock } from '../../core/index.js';
import { isObject } from '../../decorators/is-object.js';
import type { RequestScope } from '../requests/request-scope.js';
import type { FollowCallbacks, FollowedResult } from './followed-result.js';
import { followObservable } from './followed-observable.js';
import { followStream, getFileStream, isNodeStream } from './followed-stream.js';
import { describeUnseenWork, describeUnseenWorkOfHandler } from './unseen-work.js';

/** Property by which every copy of rxjs recognizes an Observable. */
const OBSERVABLE = Reflect.get(Symbol, 'observable') ?? '@@observable';

/** Result of a locked method whose work goes on. The lock is held until `ended` resolves. */
export interface LockedResult extends FollowedResult {
  readonly ended: Promise<void>;
}

interface LockedCall {
  readonly label: string;
  readonly locks: readonly LockHandle[];
  readonly whenReleased: () => Promise<unknown>;
  /** Whether an HTTP handler with `@Res()` without `passthrough` was called, which writes the response itself. */
  readonly writesResponse: boolean;
  /** Request that the call handles. */
  readonly request: RequestScope | undefined;
  /** Returns the option `ttlMs` of the call. */
  readonly getTtlMs: () => number;
}

/**
 * Follows the work behind the result of a locked method. Returns `undefined` when there is none. The loss of a lock, or
 * the end of the request that the call handles, ends the work with an error.
 * @throws LockConfigurationError with the option `returns`: the work would run outside of the lock
 */
export function followLockedResult(result: unknown, call: LockedCall): LockedResult | undefined {
  const { label, locks, whenReleased, writesResponse, request } = call;
  let onEnd = (): void => undefined;
  const ended = new Promise<void>((resolve) => (onEnd = resolve));
  // The signal of a lock aborts, at the latest, when it is read.
  const cancelIfLost = (): void => locks.forEach(({ signal }) => void signal.aborted);
  const hasResponseOnly = result === undefined && writesResponse;
  const followedResult = hasResponseOnly
    ? { value: undefined, cancel: onEnd }
    : followResult(result, label, request !== undefined, { onEnd, whenReleased, cancelIfLost });
  if (!followedResult) return undefined;
  const cancel = (reason: Error): void => {
    // The release must not depend on `onEnd` alone: a step of the work may wait for a client that has gone.
    const timer = systemClock.schedule(call.getTtlMs(), onEnd, { background: true });
    void ended.then(() => timer.cancel());
    followedResult.cancel(reason);
  };
  const cancelWithRequest = (): void => cancel(new Error('The request of this result is over'));
  // The listener is added at once, and removed when `ended` resolves.
  if (hasResponseOnly) void ended.then(request?.onResponseEnd(cancelWithRequest));
  else void ended.then(request?.onResponseEndOrAbandonment(cancelWithRequest));
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

function followResult(
  result: unknown,
  label: string,
  isOfHandler: boolean,
  callbacks: FollowCallbacks,
): FollowedResult | undefined {
  if (!isObject(result) && typeof result !== 'function') return undefined;
  if (isObservable(result)) return followObservable(result, callbacks);
  const stream = getFileStream(result) ?? result;
  if (isNodeStream(stream)) return followStream(result, stream, callbacks);
  const unseenWork = describeUnseenWork(result) ?? (isOfHandler ? describeUnseenWorkOfHandler(result) : undefined);
  if (unseenWork === undefined) return undefined;
  throw new LockConfigurationError(
    `${label} returned ${unseenWork}, whose work would run outside of the lock. Return what the work results in, or take ` +
      'the lock by withLock around it',
    'returns',
  );
}

function isObservable(value: object): value is Observable<unknown> {
  return value instanceof Observable || OBSERVABLE in value;
}
