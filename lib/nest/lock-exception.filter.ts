import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { type Observable, throwError } from 'rxjs';
import { LockConfigurationError, LockError, OptimisticConflictError } from '../core/index.js';

interface Answer {
  readonly status: number;
  /** For clients: says nothing about hosts, processes or keys. */
  readonly message: string;
  readonly retryAfterSeconds?: number;
}

const INTERNAL: Answer = { status: 500, message: 'Internal server error' };
const ANSWERS: Readonly<Record<string, Answer>> = {
  LOCK_TIMEOUT: { status: 423, message: 'Locked by another request, try again later', retryAfterSeconds: 1 },
  LOCK_BACKEND: { status: 503, message: 'Locking is unavailable, try again later', retryAfterSeconds: 5 },
  LOCK_SHUTDOWN: { status: 503, message: 'The server is shutting down, try again', retryAfterSeconds: 1 },
  LOCK_LOST: { status: 500, message: 'The lock was lost before the work was done' },
  LOCK_STALE_FENCE: { status: 409, message: 'A newer request came first' },
  OPTIMISTIC_CONFLICT: { status: 409, message: 'Other requests changed the same data first, try again later' },
};
const BAD_KEY: Answer = { status: 400, message: 'What to lock is missing from the request, or invalid' };

interface Emitter {
  emit(event: string, payload: unknown): unknown;
}

/** Others were there first. It happens, and the caller is told. */
const EXPECTED: ReadonlySet<string> = new Set(['LOCK_TIMEOUT', 'LOCK_SHUTDOWN', 'OPTIMISTIC_CONFLICT']);

type Answerable = LockError | OptimisticConflictError;

/**
 * Answers for `LockError`s and `OptimisticConflictError`, and for nothing else. HTTP: 423 and 503 with `Retry-After`, 400 for a
 * value that names no lock, 409 for a stale fencing token and for a conflict that outlasted its retries, 500 for the rest. RPC, WebSocket and GraphQL callers get `{ code, message }` in the shape
 * they know; any other caller the error itself. The log has what clients are not told.
 */
@Catch(LockError, OptimisticConflictError)
export class LockExceptionFilter implements ExceptionFilter<Answerable> {
  readonly #logger = new Logger(LockExceptionFilter.name);

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: Answerable, host: ArgumentsHost): void | Observable<never> {
    const { code } = error;
    const answer = answerTo(error);
    const { status, message } = answer;
    if (!EXPECTED.has(code)) this.#logger.error(error.message, error.stack);
    switch (host.getType<string>()) {
      case 'http':
        return this.#reply(code, answer, host.switchToHttp().getResponse());
      case 'rpc':
        return throwError(() => ({ status: 'error', code, message }));
      case 'ws':
        host.switchToWs().getClient<Emitter>().emit('exception', { status: 'error', code, message });
        return;
      case 'graphql':
        throw Object.assign(new Error(message), { extensions: { code, http: { status } } });
      default:
        throw error;
    }
  }

  #reply(code: string, { status, message, retryAfterSeconds }: Answer, response: unknown): void {
    const { httpAdapter } = this.adapterHost;
    if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response);
      return;
    }
    if (retryAfterSeconds !== undefined) httpAdapter.setHeader(response, 'Retry-After', String(retryAfterSeconds));
    httpAdapter.reply(response, { statusCode: status, code, message }, status);
  }
}

function answerTo(error: Answerable): Answer {
  if (error instanceof LockConfigurationError) return error.option === 'key' ? BAD_KEY : INTERNAL;
  return ANSWERS[error.code] ?? INTERNAL;
}
