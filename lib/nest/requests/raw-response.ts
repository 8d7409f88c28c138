import type { ExecutionContext } from '@nestjs/common';
import { isObject } from '../../decorators/is-object.js';

/** A response of Node, over HTTP/1 or HTTP/2. */
export interface RawResponse {
  /** Whether the application has written all of its answer. */
  readonly writableEnded: boolean;
  readonly destroyed?: boolean;
  readonly closed?: boolean;
  /** HTTP/2. Null once the stream is gone. */
  readonly stream?: { readonly destroyed: boolean } | null;
  once(event: 'close' | 'finish', listener: () => void): unknown;
  off(event: 'close' | 'finish', listener: () => void): unknown;
}

/** Returns the response that a request over HTTP waits for, also that of a GraphQL operation. */
export function rawResponseOf(context: ExecutionContext): RawResponse | undefined {
  switch (context.getType<string>()) {
    case 'http':
      return findRawResponse(context.switchToHttp().getResponse());
    case 'graphql': {
      const request = context.getArgByIndex<Record<string, unknown> | undefined>(2);
      const { req, res, reply } = request ?? {};
      return findRawResponse(res, reply, isObject(req) ? Reflect.get(req, 'res') : undefined);
    }
    default:
      return undefined;
  }
}

export function isClosed({ closed, destroyed, stream }: RawResponse): boolean {
  return closed === true || destroyed === true || stream === null || stream?.destroyed === true;
}

/** Calls `listener` once, when `response` is written or its connection is closed. Returns a function that stops it. */
export function onceOver(response: RawResponse, listener: () => void): () => void {
  const stop = (): void => {
    response.off('close', over);
    response.off('finish', over);
  };
  const over = (): void => {
    stop();
    listener();
  };
  if (isClosed(response)) setImmediate(over);
  response.once('close', over);
  response.once('finish', over);
  return stop;
}

/** Fastify keeps the response of Node in `raw`. */
function findRawResponse(...candidates: readonly unknown[]): RawResponse | undefined {
  return candidates
    .flatMap((candidate) => (isObject(candidate) ? [Reflect.get(candidate, 'raw'), candidate] : []))
    .find(isRawResponse);
}

function isRawResponse(value: unknown): value is RawResponse {
  if (!isObject(value) || !('writableEnded' in value)) return false;
  return ['once', 'off'].every((name) => typeof Reflect.get(value, name) === 'function');
}
