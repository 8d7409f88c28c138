import {
  isLockError,
  LockConfigurationError,
  type LockError,
  type OptimisticConflictError,
  sharedState,
} from '../../core/index.js';

/** Codes of the errors that clients are told about. Other lock errors are faults of the application: status 500. */
export type AnsweredCode =
  'LOCK_TIMEOUT' | 'LOCK_BACKEND' | 'LOCK_SHUTDOWN' | 'LOCK_LOST' | 'LOCK_STALE_FENCE' | 'OPTIMISTIC_CONFLICT';

/** Changes to the answer that clients get for an error. */
export interface LockAnswer {
  /** HTTP status, from 400 to 599. */
  readonly status?: number;
  /** Seconds in the header `Retry-After`; 0 leaves the header out. */
  readonly retryAfterSeconds?: number;
}

/** Changed answers by the error's `code`: `{ LOCK_TIMEOUT: { status: 409, retryAfterSeconds: 3 } }`. */
export type LockAnswers = Readonly<Partial<Record<AnsweredCode, LockAnswer>>>;

export type LibraryError = LockError | OptimisticConflictError;

export interface ErrorAnswer {
  readonly status: number;
  readonly code: string;
  /** Text for clients, without hosts, processes and keys. */
  readonly message: string;
  readonly retryAfterSeconds: number;
  /** Status of gRPC: https://grpc.io/docs/guides/status-codes */
  readonly grpcStatus: number;
}

const INVALID_ARGUMENT = 3;
const FAILED_PRECONDITION = 9;
const ABORTED = 10;
const INTERNAL_ERROR = 13;
const UNAVAILABLE = 14;

const DEFAULT_ANSWERS: Readonly<Record<AnsweredCode, Omit<ErrorAnswer, 'code'>>> = {
  LOCK_TIMEOUT: {
    status: 423,
    message: 'Locked by another request, try again later',
    retryAfterSeconds: 1,
    grpcStatus: ABORTED,
  },
  LOCK_BACKEND: {
    status: 503,
    message: 'Locking is unavailable, try again later',
    retryAfterSeconds: 5,
    grpcStatus: UNAVAILABLE,
  },
  LOCK_SHUTDOWN: {
    status: 503,
    message: 'The server is shutting down, try again',
    retryAfterSeconds: 1,
    grpcStatus: UNAVAILABLE,
  },
  LOCK_LOST: {
    status: 500,
    message: 'The lock was lost before the work was done',
    retryAfterSeconds: 0,
    grpcStatus: INTERNAL_ERROR,
  },
  LOCK_STALE_FENCE: {
    status: 409,
    message: 'A newer request came first',
    retryAfterSeconds: 0,
    grpcStatus: FAILED_PRECONDITION,
  },
  OPTIMISTIC_CONFLICT: {
    status: 409,
    message: 'Other requests changed the same data first, try again later',
    retryAfterSeconds: 0,
    grpcStatus: ABORTED,
  },
};
const BAD_KEY_ANSWER = {
  status: 400,
  message: 'What to lock is missing from the request, or invalid',
  retryAfterSeconds: 0,
  grpcStatus: INVALID_ARGUMENT,
};
const INTERNAL_ANSWER = {
  status: 500,
  message: 'Internal server error',
  retryAfterSeconds: 0,
  grpcStatus: INTERNAL_ERROR,
};

const clientErrors = sharedState('blamed requests', () => new WeakSet<object>());

/** Marks `error` as one that the client caused: the client gets the status 400 instead of 500. */
export function markAsClientError(error: object): void {
  clientErrors.add(error);
}

export function isLibraryError(error: unknown): error is LibraryError {
  return isLockError(error) || isLockError(error, 'OPTIMISTIC_CONFLICT');
}

export function getAnswer(error: LibraryError, changes: LockAnswers = {}): ErrorAnswer {
  const { code } = error;
  if (clientErrors.has(error)) return { ...BAD_KEY_ANSWER, code };
  return isAnsweredCode(code) ? { ...DEFAULT_ANSWERS[code], ...changes[code], code } : { ...INTERNAL_ANSWER, code };
}

/** @throws LockConfigurationError that names the unknown code or option, or the number out of range */
export function assertAnswers(answers: LockAnswers): void {
  for (const [code, { status, retryAfterSeconds, ...unknownOptions }] of Object.entries(answers)) {
    if (!isAnsweredCode(code)) throw createAnswerError(`${code} is none of ${Object.keys(DEFAULT_ANSWERS).join(', ')}`);
    for (const option of Object.keys(unknownOptions))
      throw createAnswerError(`${code} takes status and retryAfterSeconds, not ${option}`);
    if (status !== undefined && !(Number.isInteger(status) && status >= 400 && status <= 599))
      throw createAnswerError(`the status of ${code} must be from 400 to 599; it was ${status}`);
    if (retryAfterSeconds !== undefined && !(Number.isInteger(retryAfterSeconds) && retryAfterSeconds >= 0))
      throw createAnswerError(
        `retryAfterSeconds of ${code} must be a whole number, 0 or more; it was ${retryAfterSeconds}`,
      );
  }
}

function isAnsweredCode(code: string): code is AnsweredCode {
  return Object.hasOwn(DEFAULT_ANSWERS, code);
}

function createAnswerError(reason: string): LockConfigurationError {
  return new LockConfigurationError(`exceptionFilter: ${reason}`, 'exceptionFilter');
}
