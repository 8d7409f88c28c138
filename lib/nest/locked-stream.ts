import { from, isObservable, mergeMap, Observable, of, type Subscriber, Subscription } from 'rxjs';
import type { LockHandle } from '../core/index.js';

/** Runs the work under the locks. Resolves to what comes after it, or instead of it where the locks are busy. */
export type LockedRun = (
  work: (locks: readonly LockHandle[]) => Promise<void>,
  signal: AbortSignal,
) => Promise<Observable<unknown>>;

/**
 * Locks when it is subscribed to, until `call`'s Observable ends, fails or is unsubscribed; only then does it say so
 * itself. A lock that is lost on the way ends it with `LockLostError`.
 */
export function lockedStream(run: LockedRun, call: (locks: readonly LockHandle[]) => unknown): Observable<unknown> {
  return new Observable((subscriber) => {
    const unsubscribed = new AbortController();
    const work = (locks: readonly LockHandle[]): Promise<void> =>
      forward(
        toObservable(() => call(locks)),
        locks,
        subscriber,
        unsubscribed.signal,
      );
    run(work, unsubscribed.signal).then(
      (rest) => rest.subscribe(subscriber),
      (error: unknown) => subscriber.error(error),
    );
    return () => unsubscribed.abort();
  });
}

/** An Observable of what `call` returns, which may also be a promise of one. */
export function toObservable(call: () => unknown): Observable<unknown> {
  return new Observable((subscriber) => {
    const result = call();
    if (isObservable(result)) return result.subscribe(subscriber);
    return from(Promise.resolve(result))
      .pipe(mergeMap((value) => (isObservable(value) ? value : of(value))))
      .subscribe(subscriber);
  });
}

/** Resolves when `source` has ended or is no longer wanted; rejects with its error, or with the loss of a lock. */
function forward(
  source: Observable<unknown>,
  locks: readonly LockHandle[],
  subscriber: Subscriber<unknown>,
  unsubscribed: AbortSignal,
): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const signals = locks.map((lock) => lock.signal);
    // Closed before the source is subscribed to when that emits at once: adding the source then ends it.
    const subscription = new Subscription();
    const end = (settle: () => void): void => {
      for (const signal of signals) signal.removeEventListener('abort', onLost);
      unsubscribed.removeEventListener('abort', onUnsubscribed);
      subscription.unsubscribe();
      settle();
    };
    const onLost = (): void => end(() => reject(signals.find((signal) => signal.aborted)?.reason));
    const onUnsubscribed = (): void => end(resolve);
    for (const signal of signals) signal.addEventListener('abort', onLost);
    unsubscribed.addEventListener('abort', onUnsubscribed);
    const whileHeld = (value: unknown): void => {
      // Asking a handle is exact; its signal alone may be late when the event loop was blocked.
      if (locks.every((lock) => !lock.signal.aborted)) subscriber.next(value);
    };
    subscription.add(
      source.subscribe({
        next: whileHeld,
        error: (error: unknown) => end(() => reject(error)),
        complete: () => end(resolve),
      }),
    );
  });
}
