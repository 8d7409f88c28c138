import { type ExecutionContext, HttpException } from '@nestjs/common';
import { isObject } from './request-values.js';

/** "Client closed request" in nginx. Nobody reads it, and Nest does not log an `HttpException`. */
const CLIENT_CLOSED_REQUEST = 499;

/** A response of Node, of HTTP/1 or 2. */
interface RawResponse {
  readonly destroyed: boolean;
  once(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

/** Says when the client of a request over HTTP has gone before it was answered. */
export class ClientDeparture {
  readonly #controller = new AbortController();
  /** Aborts with an `HttpException`. */
  readonly signal: AbortSignal = this.#controller.signal;
  readonly #response: RawResponse | undefined;

  constructor(context: ExecutionContext) {
    this.#response = responses(context).find(isRawResponse);
    if (this.#response?.destroyed === true) this.#leave();
    else this.#response?.once('close', this.#leave);
  }

  /** The work begins, and answers by itself. */
  stopWatching(): void {
    this.#response?.off('close', this.#leave);
  }

  readonly #leave = (): void => {
    this.#controller.abort(
      new HttpException('The client went away while its request waited for a lock', CLIENT_CLOSED_REQUEST),
    );
  };
}

/** Fastify has it in `raw`; GraphQL has Express's request in its context. */
function responses(context: ExecutionContext): readonly unknown[] {
  const kind = context.getType<string>();
  if (kind === 'graphql') return [context.getArgByIndex<{ req?: { res?: unknown } } | undefined>(2)?.req?.res];
  const response: { raw?: unknown } | undefined = kind === 'http' ? context.switchToHttp().getResponse() : undefined;
  return [response?.raw, response];
}

function isRawResponse(value: unknown): value is RawResponse {
  if (!isObject(value) || !('destroyed' in value)) return false;
  return ['once', 'off'].every((name) => typeof Reflect.get(value, name) === 'function');
}
