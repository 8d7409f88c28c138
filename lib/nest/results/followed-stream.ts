import { finished, Readable, Stream, Writable } from 'node:stream';
import type { FollowCallbacks, FollowedResult } from './followed-result.js';

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

/** A stream is told by its class: an object may answer any name, as proxies do. */
export function isNodeStream(value: unknown): value is Readable | Writable {
  return value instanceof Stream;
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
  return { value, cancel };
}

/** Returns whether the state of a stream says that it has not ended. Old libraries keep little or no state. */
function isKnownToBeOpen({ readable, writable, writableFinished, destroyed }: StreamState): boolean {
  return destroyed !== true && (readable ?? (writable === true || writableFinished === false));
}
