import { type ArgumentsHost, Catch, type ExceptionFilter, type ExecutionContext, Logger } from '@nestjs/common';
import { type ApplicationConfig, BaseExceptionFilter, type HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { LockError, OptimisticConflictError } from '../../core/index.js';
import { type Answer, type AnsweredError, answerTo, isAnsweredError, type LockAnswers } from './lock-answers.js';
import { caughtTypes, filtersOf, isEventHandler } from '../method-metadata.js';
import { rpcBody, toGraphqlError, toHttpException, toTransportException } from './lock-exceptions.js';

/** These are no faults, and the caller is told. */
const EXPECTED: ReadonlySet<string> = new Set(['LOCK_TIMEOUT', 'LOCK_SHUTDOWN', 'OPTIMISTIC_CONFLICT']);

/**
 * Turns the errors of locks into exceptions of the transport, as one application wants it: for interceptors, and as a
 * global filter for errors that no interceptor sees, those of middleware, guards and pipes. Keys, hosts and processes
 * stand in the log only, at `error` where the client is not at fault.
 */
@Catch(LockError, OptimisticConflictError)
export class LockErrors implements ExceptionFilter<AnsweredError> {
  readonly #logger = new Logger('LockErrors');

  constructor(
    private readonly answers: LockAnswers,
    private readonly config: ApplicationConfig,
    private readonly adapterHost: HttpAdapterHost,
  ) {}

  /** Resolves to what filters get instead of `error`: other errors stay, and those that one of the filters names. */
  async translate(error: unknown, context: ExecutionContext): Promise<unknown> {
    if (!isAnsweredError(error) || this.#isNamed(error, context)) return error;
    const handler = context.getHandler();
    const answer = this.#answer(error, context, handler);
    // The package of the transport may be out of reach of this one.
    return toTransportException(error, answer, context, handler).catch(() => error);
  }

  catch(error: AnsweredError, host: ArgumentsHost): unknown {
    const named = this.config.getGlobalFilters().find((filter) => filter !== this && names(filter, error));
    // oxlint-disable-next-line promise/valid-params -- a filter of Nest
    if (named) return named.catch(error, host);
    const answer = this.#answer(error, host);
    switch (host.getType<string>()) {
      case 'http':
        return new BaseExceptionFilter(this.adapterHost.httpAdapter).catch(toHttpException(error, answer), host);
      case 'rpc':
        return throwError(() => rpcBody(answer));
      case 'graphql':
        throw toGraphqlError(error, answer);
      default:
        throw error;
    }
  }

  /** Logs `error`, and tells the client over HTTP when to come back. */
  #answer(error: AnsweredError, host: ArgumentsHost, handler?: object): Answer {
    const answer = answerTo(error, this.answers);
    this.#log(error, answer.status, handler);
    if (host.getType() === 'http' && answer.retryAfterSeconds > 0) {
      const { httpAdapter } = this.adapterHost;
      const response: unknown = host.switchToHttp().getResponse();
      if (!httpAdapter.isHeadersSent(response))
        httpAdapter.setHeader(response, 'Retry-After', String(answer.retryAfterSeconds));
    }
    return answer;
  }

  #isNamed(error: AnsweredError, context: ExecutionContext): boolean {
    const filters = [context.getHandler(), context.getClass()].flatMap(filtersOf);
    return [...filters, ...this.#globalFilters(context)].some((filter) => names(filter, error));
  }

  /** Returns the global filters that Nest asks, or their classes. Gateways and hybrid applications have none. */
  #globalFilters(context: ExecutionContext): readonly unknown[] {
    const type = context.getType();
    if (type === 'ws' || (type === 'rpc' && this.adapterHost.httpAdapter)) return [];
    const perRequest = this.config.getGlobalRequestFilters().map(({ metatype }) => metatype);
    return [...this.config.getGlobalFilters(), ...perRequest].filter((filter) => filter !== this);
  }

  #log(error: AnsweredError, status: number, handler: object | undefined): void {
    if (EXPECTED.has(error.code)) {
      // Nobody hears that an event was not handled.
      if (handler && isEventHandler(handler)) this.#logger.warn(`An event is lost: ${error.message}`);
      else this.#logger.debug(error.message);
    } else if (status < 500) this.#logger.warn(error.message);
    else this.#logger.error(error.message, error.stack);
  }
}

/** Filters for everything, or for every `Error`, know nothing of locks. */
function names(filter: unknown, error: AnsweredError): boolean {
  return caughtTypes(filter).some((type) => type !== Error && type !== Object && error instanceof type);
}
