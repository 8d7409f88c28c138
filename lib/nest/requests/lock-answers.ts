import {
  isLockError,
  LockConfigurationError,
  type LockError,
  type OptimisticConflictError,
  sharedState,
} from '../../core/index.js';

/** Errors that clients are told about. Others are this application's own, and a 500. */
export type AnsweredCode =
  'LOCK_TIMEOUT' | 'LOCK_BACKEND' | 'LOCK_SHUTDOWN' | 'LOCK_LOST' | 'LOCK_STALE_FENCE' | 'OPTIMISTIC_CONFLICT';

export interface LockAnswer {
  /** An HTTP status, from 400 to 599. */
  readonly status?: number;
  /** The header `Retry-After`; 0 leaves it out. */
  readonly retryAfterSeconds?: number;
}

/** By the error's `code`: `{ LOCK_TIMEOUT: { status: 409, retryAfterSeconds: 3 } }`. */
export type LockAnswers = Readonly<Partial<Record<AnsweredCode, LockAnswer>>>;

export type AnsweredError = LockError | OptimisticConflictError;

export interface Answer {
  readonly status: number;
  readonly code: string;
  /** Says nothing about hosts, processes or keys. */
  readonly message: string;
  readonly retryAfterSeconds: number;
  /** A status of gRPC: https://grpc.io/docs/guides/status-codes */
  readonly grpcStatus: number;
}

const INVALID_ARGUMENT = 3;
const FAILED_PRECONDITION = 9;
const ABORTED = 10;
const INTERNAL_ERROR = 13;
const UNAVAILABLE = 14;

const ANSWERS: Readonly<Record<AnsweredCode, Omit<Answer, 'code'>>> = {
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
const BAD_KEY = {
  status: 400,
  message: 'What to lock is missing from the request, or invalid',
  retryAfterSeconds: 0,
  grpcStatus: INVALID_ARGUMENT,
};
const INTERNAL = {
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

export function isAnsweredError(error: unknown): error is AnsweredError {
  return isLockError(error) || isLockError(error, 'OPTIMISTIC_CONFLICT');
}

export function answerTo(error: AnsweredError, changed: LockAnswers = {}): Answer {
  const { code } = error;
  if (clientErrors.has(error)) return { ...BAD_KEY, code };
  return isAnswered(code) ? { ...ANSWERS[code], ...changed[code], code } : { ...INTERNAL, code };
}

/** @throws LockConfigurationError naming the unknown code, or the figure out of range */
export function assertAnswers(answers: LockAnswers): void {
  for (const [code, { status, retryAfterSeconds, ...rest }] of Object.entries(answers)) {
    if (!isAnswered(code)) throw refused(`${code} is none of ${Object.keys(ANSWERS).join(', ')}`);
    for (const option of Object.keys(rest)) throw refused(`${code} takes status and retryAfterSeconds, not ${option}`);
    if (status !== undefined && !(Number.isInteger(status) && status >= 400 && status <= 599))
      throw refused(`the status of ${code} must be from 400 to 599; it was ${status}`);
    if (retryAfterSeconds !== undefined && !(Number.isInteger(retryAfterSeconds) && retryAfterSeconds >= 0))
      throw refused(`retryAfterSeconds of ${code} must be a whole number, 0 or more; it was ${retryAfterSeconds}`);
  }
}

function isAnswered(code: string): code is AnsweredCode {
  return Object.hasOwn(ANSWERS, code);
}

function refused(why: string): LockConfigurationError {
  return new LockConfigurationError(`exceptionFilter: ${why}`, 'exceptionFilter');
}
