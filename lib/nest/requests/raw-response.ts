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
  const stopListening = (): void => {
    response.off('close', callListener);
    response.off('finish', callListener);
  };
  const callListener = (): void => {
    stopListening();
    listener();
  };
  if (isClosed(response)) setImmediate(callListener);
  response.once('close', callListener);
  response.once('finish', callListener);
  return stopListening;
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
