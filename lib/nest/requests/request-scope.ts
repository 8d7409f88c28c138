import { AsyncLocalStorage } from 'node:async_hooks';
import { type ExecutionContext, HttpException } from '@nestjs/common';
import { sharedState } from '../../core/index.js';
import type { Declaration } from '../../decorators/declaration.js';
import { getDeclaration } from '../method-metadata.js';
import { isClosed, type RawResponse, rawResponseOf } from './raw-response.js';

/** "Client closed request" in nginx. Nobody reads it, and Nest does not log an `HttpException`. */
const CLIENT_CLOSED_REQUEST = 499;

const scopes = sharedState('requests', () => new AsyncLocalStorage<RequestScope>());

/** The request that a handler answers, for all that the handler calls. */
export class RequestScope {
  readonly response: RawResponse | undefined;
  #departure: AbortController | undefined;
  #isHandled = false;

  constructor(readonly context: ExecutionContext) {
    this.response = rawResponseOf(context);
  }

  /**
   * Aborts with an `HttpException` when nobody waits for the answer any more: the client has gone, or an interceptor has
   * given the handler up. `undefined` once the handler has ended: work that it left running outlives the request.
   */
  get departure(): AbortSignal | undefined {
    if (this.#isHandled) return undefined;
    if (!this.#departure) {
      this.#departure = new AbortController();
      this.response?.once('close', this.#noteClosed);
      if (this.response && isClosed(this.response)) this.#noteClosed();
    }
    return this.#departure.signal;
  }

  /** Notes that the handler has ended by itself. */
  end(): void {
    this.#isHandled = true;
    this.response?.off('close', this.#noteClosed);
  }

  /** Notes that the handler's result is no longer wanted. Does nothing after `end`. */
  abandon(): void {
    if (this.#isHandled) return;
    this.#depart('The request ended while it waited for a lock');
    this.end();
  }

  readonly #noteClosed = (): void => {
    if (!this.response?.writableEnded) this.#depart('The client went away while its request waited for a lock');
  };

  #depart(message: string): void {
    this.#departure?.abort(new HttpException(message, CLIENT_CLOSED_REQUEST));
  }
}

export function runInRequest<T>(scope: RequestScope, work: () => T): T {
  return scopes.run(scope, work);
}

/** Returns the request that the calling code works for, if it runs below a handler. */
export function currentRequest(): RequestScope | undefined {
  return scopes.getStore();
}

/** Returns the context of the request that this method of `instance` handles itself, not of one that merely led here. */
export function handledContext(instance: object, declaration: Declaration): ExecutionContext | undefined {
  const context = scopes.getStore()?.context;
  if (context?.getClass() !== instance.constructor) return undefined;
  const handler = context.getHandler();
  const isOwn = handler === Reflect.get(instance, declaration.name) || getDeclaration(handler) === declaration;
  return isOwn ? context : undefined;
}
