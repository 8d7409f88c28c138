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
 * Codes of requests that were not carried out. `final`: a retry brings the same answer. After any other code, the
 * request may have been carried out, or still will be.
 */
const REFUSAL_KINDS: Readonly<Partial<Record<EtcdStatus, 'passing' | 'final'>>> = {
  INVALID_ARGUMENT: 'final',
  NOT_FOUND: 'passing',
  PERMISSION_DENIED: 'final',
  RESOURCE_EXHAUSTED: 'passing',
  FAILED_PRECONDITION: 'final',
  UNIMPLEMENTED: 'final',
  UNAUTHENTICATED: 'passing',
};

/**
 * Kinds of failure by code; every other code is `refuses`. A missing permission is `refuses` too, because it concerns
 * the whole prefix. The core finds out by requesting another key.
 */
const FAILURE_KINDS: Readonly<Partial<Record<EtcdStatus, FailureKind>>> = {
  INVALID_ARGUMENT: 'value',
  FAILED_PRECONDITION: 'elsewhere',
};

/**
 * Messages about the token and the credentials of this process. etcd sends them with `INVALID_ARGUMENT`, the code of a
 * wrong value.
 */
const OLD_TOKEN_MESSAGE = 'revision of auth store is old';
const CREDENTIAL_MESSAGES = [OLD_TOKEN_MESSAGE, 'authentication failed', 'user name is empty'];

const NO_SPACE_MESSAGE = 'database space exceeded';
/** Advice of etcd's own manual: https://etcd.io/docs/v3.5/op-guide/maintenance/#space-quota */
export const COMPACTION_ADVICE =
  'have etcd compact its history (--auto-compaction-retention=1h), and run etcdctl compact, defrag and alarm disarm to make room now';

/**
 * Answer of etcd to a request that it did not carry out. It contains no secret: etcd's messages name no user and no
 * key.
 */
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

  /** Returns the error for a gRPC status; `undefined` for success. */
  static fromStatus(status: unknown, message: unknown): EtcdError | undefined {
    const code = STATUS_NAMES[Number(status)] ?? 'UNKNOWN';
    if (code === 'OK') return undefined;
    const text = typeof message === 'string' && message !== '' ? decodeMessage(message) : code;
    return new EtcdError(text.endsWith(NO_SPACE_MESSAGE) ? `${text}: ${COMPACTION_ADVICE}` : text, code);
  }
}

/** Returns whether etcd's database exceeds its quota and takes no more writes. */
export function isDatabaseFull(error: unknown): boolean {
  return error instanceof EtcdError && error.message.includes(NO_SPACE_MESSAGE);
}

export function isRefusal(error: unknown): boolean {
  return error instanceof EtcdError && REFUSAL_KINDS[error.code] !== undefined;
}

export function isFinal(error: unknown): error is EtcdError {
  return error instanceof EtcdError && REFUSAL_KINDS[error.code] === 'final' && !isTokenExpired(error);
}

/**
 * Returns whether the token is no longer valid. It expires when unused, with the member that issued it, and with every
 * change of permissions.
 */
export function isTokenExpired(error: unknown): boolean {
  return error instanceof EtcdError && (error.code === 'UNAUTHENTICATED' || error.message.includes(OLD_TOKEN_MESSAGE));
}

/**
 * Codes by which a member refuses because of its own state: it is a learner, has an older version, or was replaced. The
 * request was not carried out.
 */
const MEMBER_CODES: ReadonlySet<EtcdStatus> = new Set(['FAILED_PRECONDITION', 'UNIMPLEMENTED']);

/** Returns whether another member may carry out the request that this one has refused. */
export function isMemberRefusal(error: unknown): error is EtcdError {
  return error instanceof EtcdError && MEMBER_CODES.has(error.code);
}

function decodeMessage(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

/** Returns the reason why a connection failed, in words that may be logged. */
export function toConnectionError(error: unknown): Error {
  return withFailureKind(new Error(errorText(error) || 'the connection was lost'), 'silent');
}
