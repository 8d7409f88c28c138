import {
  defer,
  EMPTY,
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
import type { ExecutionContext } from '@nestjs/common';
import { AbortListener, type LockHandle } from '../../core/index.js';
import { isEventStream, isGrpcMethod } from '../method-metadata.js';

/**
 * Runs `work` under the locks, and resolves to an empty Observable. Resolves to the values of `onBusy` when the keys
 * stay held, without running `work`.
 */
export type RunLocked = (
  work: (locks: readonly LockHandle[]) => Promise<void>,
  signal: AbortSignal,
) => Promise<Observable<unknown>>;

/**
 * Returns an Observable that takes the locks when it is subscribed to. It holds them until the Observable of the method
 * ends, fails or is unsubscribed, and ends after the release. The loss of a lock fails it with `LockLostError`.
 */
export function createLockedStream(
  runLocked: RunLocked,
  callMethod: (locks: readonly LockHandle[]) => unknown,
): Observable<unknown> {
  return new Observable((subscriber) => {
    const unsubscribeController = new AbortController();
    const work = async (locks: readonly LockHandle[]): Promise<void> => {
      let methodEnd: Promise<unknown> | undefined;
      const source = toObservable(() => {
        const result = callMethod(locks);
        if (isObservable(result)) return result;
        return (methodEnd = Promise.resolve(result));
      });
      await forwardWhileHeld(source, locks, (value) => subscriber.next(value), unsubscribeController.signal);
      // A client that leaves does not end the method that has not returned its stream yet.
      if (unsubscribeController.signal.aborted) await methodEnd?.catch(() => undefined);
    };
    runLocked(work, unsubscribeController.signal).then(
      (remainingStream) => remainingStream.subscribe(subscriber),
      (error: unknown) => subscriber.error(error),
    );
    return () => unsubscribeController.abort();
  });
}

/**
 * Returns the stream of a skipped call. For a handler, the stream has one value, `undefined`, because Nest throws an
 * `EmptyError` for an empty stream. The stream is empty for event streams, for gRPC, and for calls by other code.
 */
export function createSkippedStream(context: ExecutionContext | undefined): Observable<undefined> {
  const handler = context?.getHandler();
  return !handler || isEventStream(handler) || isGrpcMethod(handler) ? EMPTY : of(undefined);
}

export function toObservable(getResult: () => unknown): Observable<unknown> {
  return defer(() => {
    const result = getResult();
    if (isObservable(result)) return result;
    return from(Promise.resolve(result)).pipe(mergeMap((value) => (isObservable(value) ? value : of(value))));
  });
}

/** Resolves when `source` has ended or is unsubscribed. Rejects with the error of `source`, or with a lock's loss. */
async function forwardWhileHeld(
  source: Observable<unknown>,
  locks: readonly LockHandle[],
  forward: (value: unknown) => void,
  unsubscribeSignal: AbortSignal,
): Promise<void> {
  // An aborted signal does not emit the event that `takeUntil` waits for.
  if (unsubscribeSignal.aborted) return;
  for (const lock of locks) lock.throwIfLost();
  const losses = locks.map(createLossStream);
  const forwardValue = (value: unknown): void => {
    // After a blocked event loop, a lost lock may not have emitted `abort` yet. Reading `signal` emits the event.
    if (locks.every(({ signal }) => !signal.aborted)) forward(value);
  };
  const values = source.pipe(takeUntil(merge(fromEvent(unsubscribeSignal, 'abort'), ...losses)), tap(forwardValue));
  await lastValueFrom(values.pipe(ignoreElements()), { defaultValue: undefined });
}

function createLossStream({ signal }: LockHandle): Observable<never> {
  return new Observable((subscriber) => {
    if (signal.aborted) return subscriber.error(signal.reason);
    const listener = new AbortListener(signal, () => subscriber.error(signal.reason));
    return () => listener.end();
  });
}
