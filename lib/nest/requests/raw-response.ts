import type { ExecutionContext } from '@nestjs/common';
import { isObject } from '../../decorators/is-object.js';

export interface RawResponse {
  readonly writableEnded: boolean;
  readonly destroyed?: boolean;
  readonly closed?: boolean;
  /** Stream of HTTP/2; `null` after its end. */
  readonly stream?: { readonly destroyed: boolean } | null;
  once(event: 'close' | 'finish', listener: () => void): unknown;
  off(event: 'close' | 'finish', listener: () => void): unknown;
}

/** A query of GraphQL has many listeners, and Node warns of more than ten of one event. */
const endListeners = new WeakMap<RawResponse, Set<() => void>>();

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

export function isClosed({ closed, destroyed, stream }: RawResponse): boolean {
  return closed === true || destroyed === true || stream === null || stream?.destroyed === true;
}

/**
 * Calls `listener` once, when `response` is written or its connection is closed. Returns a function that removes the
 * listener.
 */
export function onResponseEnd(response: RawResponse, listener: () => void): () => void {
  const listeners = endListeners.get(response) ?? listenForEnd(response);
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function listenForEnd(response: RawResponse): Set<() => void> {
  const listeners = new Set<() => void>();
  const onEnd = (): void => {
    response.off('close', onEnd);
    response.off('finish', onEnd);
    endListeners.delete(response);
    for (const listener of listeners) listener();
    listeners.clear();
  };
  endListeners.set(response, listeners);
  if (isClosed(response)) setImmediate(onEnd);
  response.once('close', onEnd);
  response.once('finish', onEnd);
  return listeners;
}

/** Returns the first candidate that is a response of Node, or has one in `raw` as Fastify's replies do. */
function findRawResponse(...candidates: readonly unknown[]): RawResponse | undefined {
  return candidates
    .flatMap((candidate) => (isObject(candidate) ? [Reflect.get(candidate, 'raw'), candidate] : []))
    .find(isRawResponse);
}

function isRawResponse(value: unknown): value is RawResponse {
  if (!isObject(value) || !('writableEnded' in value)) return false;
  return ['once', 'off'].every((name) => typeof Reflect.get(value, name) === 'function');
}
