import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  Inject,
  Logger,
  Optional,
} from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { HttpAdapterHost } from '@nestjs/core';
import { type Observable, throwError } from 'rxjs';
import { LockError, OptimisticConflictError } from '../core/index.js';
import { type Answer, type AnsweredError, answerTo, type LockAnswers } from './lock-answers.js';
import { caughtTypes, filtersOf } from './method-metadata.js';

/** The token of the answers that `exceptionFilter` changes, or of `false`. */
export const LOCK_ANSWERS = Symbol('exceptionFilter of DistributedLockModule');

/** A socket of `ws`, whose `emit` stays in this process, or one of socket.io. */
interface Socket {
  readonly readyState?: unknown;
  send(text: string): unknown;
  emit(event: string, payload: unknown): unknown;
}

/** These are no faults, and the caller is told. */
const EXPECTED: ReadonlySet<string> = new Set(['LOCK_TIMEOUT', 'LOCK_SHUTDOWN', 'OPTIMISTIC_CONFLICT']);

/**
 * Answers for `LockError`s and `OptimisticConflictError`, and for nothing else. HTTP: 423 and 503 with `Retry-After`,
 * 400 for a request whose values name no lock, 409 for a stale fencing token and for a conflict that outlasted its
 * retries, 500 for the rest. RPC, WebSocket and GraphQL get `{ code, message }` in their shape, others the error.
 *
 * `@Locked` attaches it to its method, in every kind of application. For errors of a `LockService` in other handlers it
 * is global for HTTP only, as every filter; gateways and microservices of hybrid applications take
 * `@UseFilters(LockExceptionFilter)`. Filters of the method itself come first, and those of its class that name the
 * error. Keys, hosts and processes stand in the log only, at `error` where the client is not at fault.
 */
@Catch(LockError, OptimisticConflictError)
export class LockExceptionFilter implements ExceptionFilter<AnsweredError> {
  readonly #logger = new Logger(LockExceptionFilter.name);

  constructor(
    private readonly adapterHost: HttpAdapterHost,
    @Optional() @Inject(LOCK_ANSWERS) private readonly answers?: LockAnswers | false,
  ) {}

  catch(error: AnsweredError, host: ArgumentsHost): void | Observable<never> {
    const answer = answerTo(error, this.answers || {});
    const { code, message, status } = answer;
    this.#log(error, status);
    switch (host.getType<string>()) {
      case 'http':
        return this.#reply(answer, host.switchToHttp().getResponse());
      case 'rpc':
        return throwError(() => ({ status: 'error', code, message }));
      case 'ws':
        return tell(host, { status: 'error', code, message });
      case 'graphql':
        throw Object.assign(new Error(message), { extensions: { code, http: { status } } });
      default:
        throw error;
    }
  }

  #log(error: AnsweredError, status: number): void {
    if (EXPECTED.has(error.code)) this.#logger.debug(error.message);
    else if (status < 500) this.#logger.warn(error.message);
    else this.#logger.error(error.message, error.stack);
  }

  #reply({ status, code, message, retryAfterSeconds }: Answer, response: unknown): void {
    const { httpAdapter } = this.adapterHost;
    if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response);
      return;
    }
    if (retryAfterSeconds > 0) httpAdapter.setHeader(response, 'Retry-After', String(retryAfterSeconds));
    httpAdapter.reply(response, { statusCode: status, error: STATUS_CODES[status], code, message }, status);
  }
}

/** In the shape of Nest's own exceptions, with the message that failed. */
function tell(host: ArgumentsHost, payload: { status: string; code: string; message: string }): void {
  const ws = host.switchToWs();
  const socket = ws.getClient<Socket>();
  const data = { ...payload, cause: { pattern: ws.getPattern(), data: ws.getData<unknown>() } };
  if (typeof socket.readyState === 'number') socket.send(JSON.stringify({ event: 'exception', data }));
  else socket.emit('exception', data);
}

const claimed = new WeakSet<object>();

/** Nest picks a filter by `instanceof` alone, which is true for claimed errors only. */
abstract class ClaimedError extends Error {
  static override [Symbol.hasInstance](error: unknown): boolean {
    return isAnsweredError(error) && claimed.has(error);
  }
}

/**
 * The filter that `@Locked` puts on its method, before gateways, hybrid applications and global catch-all filters hide
 * the error. It answers in applications that want that.
 */
@Catch(ClaimedError)
export class LockedExceptionFilter extends LockExceptionFilter {}

/** Has `LockedExceptionFilter` answer for `error`, unless the handler's class has a filter for such errors. */
export function claim(error: unknown, context: ExecutionContext): void {
  if (!isAnsweredError(error)) return;
  const types = filtersOf(context.getClass()).flatMap(caughtTypes);
  // A filter for everything, or for every Error, knows nothing of locks.
  const isNamed = types.some((type) => type !== Error && type !== Object && error instanceof type);
  if (!isNamed) claimed.add(error);
}

function isAnsweredError(error: unknown): error is AnsweredError {
  return error instanceof LockError || error instanceof OptimisticConflictError;
}
