import { type ArgumentsHost, Catch, type ExceptionFilter, type ExecutionContext, Logger } from '@nestjs/common';
import { type ApplicationConfig, BaseExceptionFilter, type HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { LockError, OptimisticConflictError } from '../../core/index.js';
import { type ErrorAnswer, type LibraryError, getAnswer, isLibraryError, type LockAnswers } from './lock-answers.js';
import { getCaughtTypes, getFilters, isEventHandler } from '../method-metadata.js';
import { toRpcBody, toGraphqlError, toHttpException, toTransportException } from './lock-exceptions.js';

/** Codes of errors that are part of normal operation: the log shows them at `debug` only. */
const EXPECTED_CODES: ReadonlySet<string> = new Set(['LOCK_TIMEOUT', 'LOCK_SHUTDOWN', 'OPTIMISTIC_CONFLICT']);

/**
 * Translates lock errors for `LockErrorsInterceptor`. The class is also a global filter, for errors of middleware,
 * guards and pipes, which interceptors do not see. Keys, hosts and processes appear in the log only.
 */
@Catch(LockError, OptimisticConflictError)
export class LockErrorTranslator implements ExceptionFilter<LibraryError> {
  readonly #logger = new Logger('LockErrors');

  constructor(
    private readonly answers: LockAnswers,
    private readonly config: ApplicationConfig,
    private readonly adapterHost: HttpAdapterHost,
  ) {}

  /** Resolves to `error` itself when it is no lock error, or when `@Catch` of a filter names its class. */
  async translate(error: unknown, context: ExecutionContext): Promise<unknown> {
    if (!isLibraryError(error) || this.#hasApplicationFilter(error, context)) return error;
    const handler = context.getHandler();
    const answer = this.#prepareAnswer(error, context, handler);
    // Importing the transport's package may fail where several packages of a workspace have their own dependencies.
    return toTransportException(error, answer, context, handler).catch(() => error);
  }

  catch(error: LibraryError, host: ArgumentsHost): unknown {
    const applicationFilter = this.config
      .getGlobalFilters()
      .find((filter) => !(filter instanceof LockErrorTranslator) && catchesErrorClass(filter, error));
    // oxlint-disable-next-line promise/valid-params -- a filter of Nest
    if (applicationFilter) return applicationFilter.catch(error, host);
    const answer = this.#prepareAnswer(error, host);
    switch (host.getType<string>()) {
      case 'http':
        return new BaseExceptionFilter(this.adapterHost.httpAdapter).catch(toHttpException(error, answer), host);
      case 'rpc':
        return throwError(() => toRpcBody(answer));
      case 'graphql':
        throw toGraphqlError(error, answer);
      default:
        throw error;
    }
  }

  /** Logs `error`, sets the header `Retry-After` over HTTP, and returns the answer. */
  #prepareAnswer(error: LibraryError, host: ArgumentsHost, handler?: object): ErrorAnswer {
    const answer = getAnswer(error, this.answers);
    this.#log(error, answer.status, host, handler);
    if (host.getType() === 'http' && answer.retryAfterSeconds > 0) {
      const { httpAdapter } = this.adapterHost;
      const response: unknown = host.switchToHttp().getResponse();
      if (!httpAdapter.isHeadersSent(response))
        httpAdapter.setHeader(response, 'Retry-After', String(answer.retryAfterSeconds));
    }
    return answer;
  }

  #hasApplicationFilter(error: LibraryError, context: ExecutionContext): boolean {
    const filters = [context.getHandler(), context.getClass()].flatMap(getFilters);
    return [...filters, ...this.#getGlobalFilters(context)].some((filter) => catchesErrorClass(filter, error));
  }

  /** Returns the global filters that Nest calls: none in gateways, and none for messages in hybrid applications. */
  #getGlobalFilters(context: ExecutionContext): readonly unknown[] {
    const type = context.getType();
    if (type === 'ws' || (type === 'rpc' && this.adapterHost.httpAdapter)) return [];
    const requestScopedClasses = this.config.getGlobalRequestFilters().map(({ metatype }) => metatype);
    return [...this.config.getGlobalFilters(), ...requestScopedClasses].filter(
      (filter) => !(filter instanceof LockErrorTranslator),
    );
  }

  #log(error: LibraryError, status: number, host: ArgumentsHost, handler: object | undefined): void {
    if (EXPECTED_CODES.has(error.code)) {
      // The sender of an event gets no answer, so only the log reports that the event is lost.
      if (handler && isEventHandler(handler)) this.#logger.warn(`An event is lost: ${error.message}`);
      // Nest does not tell filters whether a message is an event.
      else if (!handler && host.getType() === 'rpc') this.#logger.warn(`A message or event failed: ${error.message}`);
      else this.#logger.debug(error.message);
    } else if (status < 500) this.#logger.warn(error.message);
    else this.#logger.error(error.message, error.stack);
  }
}

/** Returns whether `@Catch` of a filter names the error's class. A filter for every `Error` does not count. */
function catchesErrorClass(filter: unknown, error: LibraryError): boolean {
  return getCaughtTypes(filter).some((type) => type !== Error && type !== Object && error instanceof type);
}
