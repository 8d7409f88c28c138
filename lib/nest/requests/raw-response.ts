import type { ExecutionContext } from '@nestjs/common';
import { isObject } from '../../decorators/is-object.js';
import { type EventSource, onFirstEvent } from './shared-listeners.js';

interface Connection extends EventSource {
  readonly destroyed?: boolean;
}

export interface RawResponse extends EventSource {
  readonly writableEnded: boolean;
  readonly destroyed?: boolean;
  readonly closed?: boolean;
  /** Stream of HTTP/2; `null` after its end. */
  readonly stream?: { readonly destroyed: boolean } | null;
  readonly req?: object;
}

export function getRawResponse(context: ExecutionContext): RawResponse | undefined {
  switch (context.getType<string>()) {
    case 'http':
      return findRawResponse(context.switchToHttp().getResponse());
    case 'graphql': {
      const graphqlContext = context.getArgByIndex<Record<string, unknown> | undefined>(2);
      const { req, res, reply } = graphqlContext ?? {};
      return findRawResponse(res, reply, isObject(req) ? Reflect.get(req, 'res') : undefined);
    }
    default:
      return undefined;
  }
}

export function isClosed(response: RawResponse): boolean {
  const { closed, destroyed, stream } = response;
  const isResponseClosed = closed === true || destroyed === true || stream === null || stream?.destroyed === true;
  return isResponseClosed || getConnection(response)?.destroyed === true;
}

/**
 * Calls `listener` once, when `response` is written or its connection is closed. Returns a function that removes the
 * listener.
 */
export function onResponseEnd(response: RawResponse, listener: () => void): () => void {
  const onEnd = (): void => {
    stopListening();
    listener();
  };
  const stopListening = (): void => {
    clearImmediate(immediate);
    removeResponseListener();
    removeConnectionListener?.();
  };
  const connection = getConnection(response);
  const removeResponseListener = onFirstEvent(response, ['close', 'finish'], onEnd);
  const removeConnectionListener = connection && onFirstEvent(connection, ['close'], onEnd);
  const immediate = isClosed(response) ? setImmediate(onEnd) : undefined;
  return stopListening;
}

/**
 * Returns the connection of an HTTP/1 request. The response to a pipelined request has no connection before the earlier
 * responses are out, and has no event when the connection is lost.
 */
function getConnection({ req, stream }: RawResponse): Connection | undefined {
  const { socket }: { readonly socket?: unknown } = req ?? {};
  return stream === undefined && isEventSource(socket) ? socket : undefined;
}

/** Returns the first candidate that is a response of Node, or has one in `raw` as Fastify's replies do. */
function findRawResponse(...candidates: readonly unknown[]): RawResponse | undefined {
  return candidates
    .flatMap((candidate) => (isObject(candidate) ? [Reflect.get(candidate, 'raw'), candidate] : []))
    .find(isRawResponse);
}

function isRawResponse(value: unknown): value is RawResponse {
  return isEventSource(value) && 'writableEnded' in value;
}

function isEventSource(value: unknown): value is Connection {
  return isObject(value) && ['once', 'off'].every((name) => typeof Reflect.get(value, name) === 'function');
}
