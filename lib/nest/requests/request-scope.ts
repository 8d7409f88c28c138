import { AsyncLocalStorage } from 'node:async_hooks';
import { type ExecutionContext, HttpException } from '@nestjs/common';
import { sharedState } from '../../core/index.js';
import type { Declaration } from '../../decorators/declaration.js';
import { getDeclaration } from '../method-metadata.js';
import { isClosed, type RawResponse, getRawResponse } from './raw-response.js';

/** Status "client closed request" of nginx. No client reads it, and Nest does not log an `HttpException`. */
const CLIENT_CLOSED_REQUEST = 499;

const scopes = sharedState('requests', () => new AsyncLocalStorage<RequestScope>());

/** Request that a handler answers, available to all code that the handler calls. */
export class RequestScope {
  readonly response: RawResponse | undefined;
  #abandonController: AbortController | undefined;
  #hasEnded = false;

  constructor(readonly context: ExecutionContext) {
    this.response = getRawResponse(context);
  }

  /**
   * Signal that aborts with an `HttpException` when the answer is no longer needed. The client has then gone, or an
   * interceptor has stopped waiting for the handler. After the end of the handler it is `undefined`, and other work goes on.
   */
  get abandonSignal(): AbortSignal | undefined {
    if (this.#hasEnded) return undefined;
    if (!this.#abandonController) {
      this.#abandonController = new AbortController();
      this.response?.once('close', this.#handleClose);
      if (this.response && isClosed(this.response)) this.#handleClose();
    }
    return this.#abandonController.signal;
  }

  /** Records that the handler has ended by itself. */
  end(): void {
    this.#hasEnded = true;
    this.response?.off('close', this.#handleClose);
  }

  /** Records that nothing waits for the handler's result any more. Does nothing after `end`. */
  abandon(): void {
    if (this.#hasEnded) return;
    this.#abortWaits('The request ended while it waited for a lock');
    this.end();
  }

  readonly #handleClose = (): void => {
    if (!this.response?.writableEnded) this.#abortWaits('The client went away while its request waited for a lock');
  };

  #abortWaits(message: string): void {
    this.#abandonController?.abort(new HttpException(message, CLIENT_CLOSED_REQUEST));
  }
}

export function runInRequest<T>(scope: RequestScope, work: () => T): T {
  return scopes.run(scope, work);
}

/** Returns the request of the handler that called the current code, if a handler did. */
export function currentRequest(): RequestScope | undefined {
  return scopes.getStore();
}

/** Returns the context of the current request if this method of `instance` is its handler. */
export function getHandledContext(instance: object, declaration: Declaration): ExecutionContext | undefined {
  const context = scopes.getStore()?.context;
  if (context?.getClass() !== instance.constructor) return undefined;
  const handler = context.getHandler();
  const isHandler = handler === Reflect.get(instance, declaration.name) || getDeclaration(handler) === declaration;
  return isHandler ? context : undefined;
}
