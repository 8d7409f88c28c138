import { AsyncResource } from 'node:async_hooks';
import {
  concatMap,
  defer,
  dematerialize,
  finalize,
  from,
  map,
  materialize,
  Observable,
  type ObservableNotification,
  of,
  Subject,
  takeUntil,
  throwError,
} from 'rxjs';
import type { FollowCallbacks, FollowedResult } from './followed-result.js';

/** Calls `onEnd` when the last subscription ends. Later subscribers get an error, because the lock is released then. */
export function followObservable(
  source: Observable<unknown>,
  { onEnd, whenReleased, cancelIfLost }: FollowCallbacks,
): FollowedResult {
  const asyncContext = new AsyncResource('LockedResult');
  const cancellation = new Subject<never>();
  let subscriptionCount = 0;
  let hasEnded = false;
  const value = defer(() => {
    if (hasEnded) return throwError(() => new Error('The lock of this Observable is released: call the method again'));
    subscriptionCount += 1;
    let isCounted = true;
    const endSubscription = (): void => {
      if (isCounted) subscriptionCount -= 1;
      isCounted = false;
      if (subscriptionCount > 0) return;
      hasEnded = true;
      onEnd();
    };
    /** Passes values on at once, and delays the end of the Observable until the lock is released. */
    const delayEnd = (notification: ObservableNotification<unknown>): Observable<ObservableNotification<unknown>> => {
      if (notification.kind === 'N') {
        cancelIfLost();
        return of(notification);
      }
      endSubscription();
      return hasEnded ? from(whenReleased()).pipe(map(() => notification)) : of(notification);
    };
    return new Observable((subscriber) => asyncContext.runInAsyncScope(() => source.subscribe(subscriber))).pipe(
      materialize(),
      concatMap(delayEnd),
      dematerialize(),
      takeUntil(cancellation),
      finalize(endSubscription),
    );
  });
  const cancel = (reason: Error): void => {
    cancellation.error(reason);
    // Without subscribers, no subscription ends and calls `onEnd`.
    onEnd();
  };
  return { value, cancel };
}
