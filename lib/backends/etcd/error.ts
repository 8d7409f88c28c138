import { errorText, type FailureKind, withFailureKind } from '../../core/index.js';

/** Status codes of gRPC, by number: https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
const STATUS_NAMES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const;

export type EtcdStatus = Exclude<(typeof STATUS_NAMES)[number], 'OK'>;

/**
 * Codes of requests that were certainly not carried out. After any other code, the request may still be carried out.
 * `passing`: a retry may succeed. `final`: a retry brings the same answer.
 */
const REFUSALS_BY_CODE: Readonly<Partial<Record<EtcdStatus, 'passing' | 'final'>>> = {
  INVALID_ARGUMENT: 'final',
  NOT_FOUND: 'passing',
  PERMISSION_DENIED: 'final',
  RESOURCE_EXHAUSTED: 'passing',
  FAILED_PRECONDITION: 'final',
  UNIMPLEMENTED: 'final',
  UNAUTHENTICATED: 'passing',
};

/**
 * Kinds of failure by code. Every other code has the kind `refuses`. `PERMISSION_DENIED` has that kind, too, because a
 * missing permission concerns the whole prefix, whereas `value` concerns the key of one caller.
 */
const FAILURE_KINDS: Readonly<Partial<Record<EtcdStatus, FailureKind>>> = {
  INVALID_ARGUMENT: 'value',
  FAILED_PRECONDITION: 'elsewhere',
};

/** Messages about credentials, which etcd sends with `INVALID_ARGUMENT`, the code of a wrong value. */
const OLD_TOKEN_MESSAGE = 'revision of auth store is old';
const CREDENTIAL_MESSAGES = [OLD_TOKEN_MESSAGE, 'authentication failed', 'user name is empty'];

const NO_SPACE_MESSAGE = 'database space exceeded';
export const COMPACTION_ADVICE =
  'have etcd compact its history (--auto-compaction-retention=1h), and run etcdctl compact, defrag and alarm disarm to make room now';

/** Error with a status code of gRPC. Its message contains no secret, because etcd names no user and no key in it. */
export class EtcdError extends Error {
  override readonly name = 'EtcdError';

  constructor(
    message: string,
    readonly code: EtcdStatus,
  ) {
    super(message);
  }

  get failureKind(): FailureKind {
    const isAboutCredentials = CREDENTIAL_MESSAGES.some((text) => this.message.includes(text));
    return (isAboutCredentials ? undefined : FAILURE_KINDS[this.code]) ?? 'refuses';
  }

  static fromStatus(status: unknown, message: unknown): EtcdError | undefined {
    const code = STATUS_NAMES[Number(status)] ?? 'UNKNOWN';
    if (code === 'OK') return undefined;
    const text = typeof message === 'string' && message !== '' ? decodeMessage(message) : code;
    return new EtcdError(text.endsWith(NO_SPACE_MESSAGE) ? `${text}: ${COMPACTION_ADVICE}` : text, code);
  }
}

export function isDatabaseFull(error: unknown): boolean {
  return error instanceof EtcdError && error.message.includes(NO_SPACE_MESSAGE);
}

/** Returns whether the server has certainly not carried out the request that failed with `error`. */
export function isRefusal(error: unknown): boolean {
  return error instanceof EtcdError && REFUSALS_BY_CODE[error.code] !== undefined;
}

/** Returns whether a retry would bring the same error. */
export function isFinalError(error: unknown): error is EtcdError {
  return error instanceof EtcdError && REFUSALS_BY_CODE[error.code] === 'final' && !isTokenExpired(error);
}

export function isTokenExpired(error: unknown): error is EtcdError {
  return error instanceof EtcdError && (error.code === 'UNAUTHENTICATED' || error.message.includes(OLD_TOKEN_MESSAGE));
}

/** Codes by which a member refuses because of its own state: it is a learner, has an older version, or was replaced. */
const MEMBER_REFUSAL_CODES: ReadonlySet<EtcdStatus> = new Set(['FAILED_PRECONDITION', 'UNIMPLEMENTED']);

export function isMemberRefusal(error: unknown): error is EtcdError {
  return error instanceof EtcdError && MEMBER_REFUSAL_CODES.has(error.code);
}

function decodeMessage(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

export function toConnectionError(error: unknown): Error {
  return withFailureKind(new Error(errorText(error) || 'the connection was lost'), 'silent');
}
