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
import type { FollowedResult, Follower } from './followed-result.js';

/** The work ends when no subscription is left. Later subscribers are refused: they would have no lock. */
export function followObservable(source: Observable<unknown>, { onEnd, whenReleased }: Follower): FollowedResult {
  const callTree = new AsyncResource('LockedResult');
  const cancelled = new Subject<never>();
  let subscriptions = 0;
  let isOver = false;
  const value = defer(() => {
    if (isOver) return throwError(() => new Error('The lock of this Observable is released: call the method again'));
    subscriptions += 1;
    let hasLeft = false;
    const leave = (): void => {
      if (!hasLeft) subscriptions -= 1;
      hasLeft = true;
      if (subscriptions > 0) return;
      isOver = true;
      onEnd();
    };
    /** The end is told after the release, as the value of a promise is. */
    const afterRelease = (each: ObservableNotification<unknown>): Observable<ObservableNotification<unknown>> => {
      if (each.kind === 'N') return of(each);
      leave();
      return isOver ? from(whenReleased()).pipe(map(() => each)) : of(each);
    };
    return new Observable((subscriber) => callTree.runInAsyncScope(() => source.subscribe(subscriber))).pipe(
      materialize(),
      concatMap(afterRelease),
      dematerialize(),
      takeUntil(cancelled),
      finalize(leave),
    );
  });
  return { value, cancel: (reason) => cancelled.error(reason) };
}
