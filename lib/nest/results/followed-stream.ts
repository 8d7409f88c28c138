import { AsyncResource } from 'node:async_hooks';
import { finished, Readable, Writable } from 'node:stream';
import { isObject } from '../../decorators/is-object.js';
import type { FollowedResult, FollowCallbacks } from './followed-result.js';

interface StreamState {
  readonly readable?: boolean;
  readonly writable?: boolean;
  readonly writableFinished?: boolean;
  readonly destroyed?: boolean;
}

/** Returns the stream of a `StreamableFile`, and `undefined` for other objects. */
export function getFileStream(value: object): unknown {
  if (!('getStream' in value && 'getHeaders' in value) || typeof value.getStream !== 'function') return undefined;
  return Reflect.apply(value.getStream, value, []);
}

export function isNodeStream(value: unknown): value is Readable | Writable {
  return isObject(value) && ['pipe', 'on'].every((name) => typeof Reflect.get(value, name) === 'function');
}

/** Returns `undefined` for a stream that has ended, or whose properties do not tell whether it has. */
export function followStream(
  value: object,
  stream: Readable | Writable,
  { onEnd }: FollowCallbacks,
): FollowedResult | undefined {
  if (!isKnownToBeOpen(stream)) return undefined;
  // A duplex stream has ended when its readable side has: callers read it, and its writable side may stay open.
  finished(stream, 'readable' in stream ? { writable: false } : {}, onEnd);
  const cancel = (reason: Error): void => {
    stream.destroy?.(reason);
    // `finished` may not call `onEnd` for a response, for a stream of an old library, or for one that has closed
    // without the event `close`.
    const willFinish = (stream instanceof Readable || stream instanceof Writable) && !stream.closed;
    if (!willFinish) onEnd();
  };
  const isUnread = (): boolean =>
    stream instanceof Readable &&
    !(stream instanceof Writable) &&
    !stream.readableDidRead &&
    stream.readableFlowing === null;
  return { value, cancel, isUnread };
}

/** Returns whether the state of a stream says that it has not ended. Old libraries keep little or no state. */
function isKnownToBeOpen({ readable, writable, writableFinished, destroyed }: StreamState): boolean {
  return destroyed !== true && (readable ?? (writable === true || writableFinished === false));
}

export function followWebStream<Chunk>(
  source: ReadableStream<Chunk>,
  { onEnd, onClosing, cancelIfLost }: FollowCallbacks,
) {
  const asyncContext = new AsyncResource('LockedResult');
  const reader = source.getReader();
  let controller: ReadableStreamDefaultController<Chunk> | undefined;
  let isUnread = true;
  let isCancelled = false;
  const cancelSource = async (reason: unknown): Promise<void> => {
    // `reader.cancel` ends a pending read before the source has ended. `pull` must not call `onEnd` for that read.
    isCancelled = true;
    await asyncContext.runInAsyncScope(() => reader.cancel(reason)).finally(onEnd);
  };
  const value = new ReadableStream<Chunk>(
    {
      start: (ownController) => void (controller = ownController),
      async pull(ownController) {
        isUnread = false;
        cancelIfLost();
        if (isCancelled) return;
        try {
          const { done, value: chunk } = await asyncContext.runInAsyncScope(() => reader.read());
          if (isCancelled) return;
          if (!done) return ownController.enqueue(chunk);
          onEnd();
          ownController.close();
        } catch (error) {
          if (!isCancelled) onEnd();
          throw error;
        }
      },
      cancel: (reason) => {
        onClosing();
        return cancelSource(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return {
    value,
    cancel: (reason: Error): void => {
      controller?.error(reason);
      cancelSource(reason).catch(() => undefined);
    },
    isUnread: (): boolean => isUnread,
  };
}

/** Returns `undefined` for a response without a body, and for one whose body is being read already. */
export function followResponse(response: Response, callbacks: FollowCallbacks): FollowedResult | undefined {
  const { body, url, redirected, type } = response;
  if (!body || response.bodyUsed || body.locked) return undefined;
  const followedBody = followWebStream(body, callbacks);
  const copy = new Response(followedBody.value, response);
  // The constructor does not copy these properties, which tell how the response was fetched.
  for (const [name, value] of Object.entries({ url, redirected, type })) Object.defineProperty(copy, name, { value });
  return { ...followedBody, value: copy };
}
