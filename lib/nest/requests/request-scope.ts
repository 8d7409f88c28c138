import { type ExecutionContext, HttpException } from '@nestjs/common';
import { ownContext } from '../../core/index.js';
import type { Declaration } from '../../decorators/declaration.js';
import { getDeclaration } from '../method-metadata.js';
import { getRawResponse, isClosed, onResponseEnd, type RawResponse } from './raw-response.js';

/** Status "client closed request" of nginx. No client reads it, and Nest does not log an `HttpException`. */
const CLIENT_CLOSED_REQUEST_STATUS = 499;

const requestScopeStorage = ownContext<RequestScope>('requests');

export class RequestScope {
  readonly #response: RawResponse | undefined;
  #abandonController: AbortController | undefined;
  readonly #abandonListeners = new Set<() => void>();
  #hasEnded = false;
  #isAbandoned = false;
  #stopListening = (): void => undefined;

  constructor(readonly context: ExecutionContext) {
    this.#response = getRawResponse(context);
  }

  /**
   * Signal that aborts with an `HttpException` when the client has gone, or an interceptor has stopped waiting for the
   * handler. `undefined` after the end of the handler, so that work that goes on is not aborted.
   */
  get abandonSignal(): AbortSignal | undefined {
    if (this.#hasEnded) return undefined;
    if (!this.#abandonController) {
      this.#abandonController = new AbortController();
      if (this.#response) {
        this.#stopListening = onResponseEnd(this.#response, this.#handleClose);
        if (isClosed(this.#response)) this.#handleClose();
      }
    }
    return this.#abandonController.signal;
  }

  /**
   * Calls `listener` once the response is written or its connection is closed, or an interceptor or the transport has
   * stopped waiting for the handler. Returns a function that removes the listener.
   */
  onResponseEndOrAbandonment(listener: () => void): () => void {
    const immediate = this.#isAbandoned ? setImmediate(listener) : undefined;
    this.#abandonListeners.add(listener);
    const stopListening = this.onResponseEnd(listener);
    return () => {
      clearImmediate(immediate);
      this.#abandonListeners.delete(listener);
      stopListening();
    };
  }

  /** Calls `listener` once the response is written or its connection is closed. Returns a function that removes it. */
  onResponseEnd(listener: () => void): () => void {
    return this.#response ? onResponseEnd(this.#response, listener) : () => undefined;
  }

  end(): void {
    this.#hasEnded = true;
    this.#stopListening();
  }

  /** Records that nothing waits for the handler's result any more. Does nothing after `end`. */
  abandon(): void {
    if (this.#hasEnded) return;
    this.#abortWaits('The request ended while it waited for a lock');
    this.end();
    this.#isAbandoned = true;
    for (const listener of this.#abandonListeners) listener();
  }

  readonly #handleClose = (): void => {
    if (!this.#response?.writableEnded) this.#abortWaits('The client went away while its request waited for a lock');
  };

  #abortWaits(message: string): void {
    this.#abandonController?.abort(new HttpException(message, CLIENT_CLOSED_REQUEST_STATUS));
  }
}

export function runInRequest<T>(scope: RequestScope, work: () => T): T {
  return requestScopeStorage.run(scope, work);
}

export function getCurrentRequest(): RequestScope | undefined {
  return requestScopeStorage.getStore();
}

/** Returns `undefined` unless this method of `instance` is the handler of the current request. */
export function getHandlerContext(instance: object, declaration: Declaration): ExecutionContext | undefined {
  const context = requestScopeStorage.getStore()?.context;
  if (context?.getClass() !== instance.constructor) return undefined;
  const handler = context.getHandler();
  const isHandler = handler === Reflect.get(instance, declaration.name) || getDeclaration(handler) === declaration;
  return isHandler ? context : undefined;
}
