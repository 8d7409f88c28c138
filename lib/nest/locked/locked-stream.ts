import {
  defer,
  from,
  fromEvent,
  ignoreElements,
  isObservable,
  lastValueFrom,
  merge,
  mergeMap,
  Observable,
  of,
  takeUntil,
  tap,
} from 'rxjs';
import type { LockHandle } from '../../core/index.js';

/** Runs the work under the locks. Resolves to what comes after it, or instead of it where the locks are busy. */
export type LockedRun = (
  work: (locks: readonly LockHandle[]) => Promise<void>,
  signal: AbortSignal,
) => Promise<Observable<unknown>>;

/**
 * Locks when it is subscribed to, until `call`'s Observable ends, fails or is unsubscribed. Only then does it end
 * itself. A lock that is lost on the way ends it with `LockLostError`.
 */
export function lockedStream(run: LockedRun, call: (locks: readonly LockHandle[]) => unknown): Observable<unknown> {
  return new Observable((subscriber) => {
    const unsubscribed = new AbortController();
    const work = (locks: readonly LockHandle[]): Promise<void> => {
      const source = toObservable(() => call(locks));
      return forward(source, locks, (value) => subscriber.next(value), unsubscribed.signal);
    };
    run(work, unsubscribed.signal).then(
      (rest) => rest.subscribe(subscriber),
      (error: unknown) => subscriber.error(error),
    );
    return () => unsubscribed.abort();
  });
}

/** An Observable of what `call` returns, which may also be a promise of one. */
export function toObservable(call: () => unknown): Observable<unknown> {
  return defer(() => {
    const result = call();
    if (isObservable(result)) return result;
    return from(Promise.resolve(result)).pipe(mergeMap((value) => (isObservable(value) ? value : of(value))));
  });
}

/** Resolves when `source` has ended or is no longer wanted; rejects with its error, or with the loss of a lock. */
function forward(
  source: Observable<unknown>,
  locks: readonly LockHandle[],
  next: (value: unknown) => void,
  unsubscribed: AbortSignal,
): Promise<void> {
  const losses = locks.map(({ signal }) => fromEvent(signal, 'abort').pipe(tap(() => signal.throwIfAborted())));
  const whileHeld = (value: unknown): void => {
    // A handle knows its loss at once. The event may be late when the event loop was blocked.
    if (locks.every(({ signal }) => !signal.aborted)) next(value);
  };
  const values = source.pipe(takeUntil(merge(fromEvent(unsubscribed, 'abort'), ...losses)), tap(whileHeld));
  return lastValueFrom(values.pipe(ignoreElements()), { defaultValue: undefined });
}
