import { errorText, type FailureKind, withFailureKind } from '../../core/index.js';

/** https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
const STATUS = [
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

export type EtcdStatus = Exclude<(typeof STATUS)[number], 'OK'>;

/** The request was not carried out; `final`: asking again is no use. After other codes it may have been, or still be. */
const REFUSALS: Readonly<Partial<Record<EtcdStatus, 'passing' | 'final'>>> = {
  INVALID_ARGUMENT: 'final',
  NOT_FOUND: 'passing',
  PERMISSION_DENIED: 'final',
  RESOURCE_EXHAUSTED: 'passing',
  FAILED_PRECONDITION: 'final',
  UNIMPLEMENTED: 'final',
  UNAUTHENTICATED: 'passing',
};

/** A right that is missing concerns all keys: the user needs the prefix, and the core asks for another key to see. */
const KINDS: Readonly<Partial<Record<EtcdStatus, FailureKind>>> = {
  INVALID_ARGUMENT: 'value',
  FAILED_PRECONDITION: 'elsewhere',
};

/** Messages with the code of a wrong value that are about the token and the credentials of this process. */
const TOKEN_IS_OLD = 'revision of auth store is old';
const ABOUT_CREDENTIALS = [TOKEN_IS_OLD, 'authentication failed', 'user name is empty'];

const NO_SPACE = 'database space exceeded';
/** The advice of etcd's own manual: https://etcd.io/docs/v3.5/op-guide/maintenance/#space-quota */
export const MORE_SPACE =
  'have etcd compact its history (--auto-compaction-retention=1h), and run etcdctl compact, defrag and alarm disarm to make room now';

/** etcd's answer to a request that it did not carry out. It has no secret: etcd's messages name no user and no key. */
export class EtcdError extends Error {
  override readonly name = 'EtcdError';

  constructor(
    message: string,
    readonly code: EtcdStatus,
  ) {
    super(message);
  }

  get failureKind(): FailureKind {
    const isAboutCredentials = ABOUT_CREDENTIALS.some((text) => this.message.includes(text));
    return (isAboutCredentials ? undefined : KINDS[this.code]) ?? 'refuses';
  }

  /** `undefined` for success. */
  static of(status: unknown, message: unknown): EtcdError | undefined {
    const code = STATUS[Number(status)] ?? 'UNKNOWN';
    if (code === 'OK') return undefined;
    const said = typeof message === 'string' && message !== '' ? decoded(message) : code;
    return new EtcdError(said.endsWith(NO_SPACE) ? `${said}: ${MORE_SPACE}` : said, code);
  }
}

/** etcd's database has outgrown its quota and takes no write any more. */
export function isFull(error: unknown): boolean {
  return error instanceof EtcdError && error.message.includes(NO_SPACE);
}

export function isRefusal(error: unknown): boolean {
  return error instanceof EtcdError && REFUSALS[error.code] !== undefined;
}

export function isFinal(error: unknown): error is EtcdError {
  return error instanceof EtcdError && REFUSALS[error.code] === 'final' && !isTokenExpired(error);
}

/** A token ends when it is not used for a while, with the member that gave it, and with every change of rights. */
export function isTokenExpired(error: unknown): boolean {
  return error instanceof EtcdError && (error.code === 'UNAUTHENTICATED' || error.message.includes(TOKEN_IS_OLD));
}

/**
 * Codes by which a member speaks of itself: a learner, an older version, one that another member has replaced. The
 * request was not carried out.
 */
const ABOUT_MEMBER: ReadonlySet<EtcdStatus> = new Set(['FAILED_PRECONDITION', 'UNIMPLEMENTED']);

/** Whether another member may carry the request out that this one has refused. */
export function isAboutMember(error: unknown): error is EtcdError {
  return error instanceof EtcdError && ABOUT_MEMBER.has(error.code);
}

function decoded(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

/** The reason why a connection failed, in words that may be logged. */
export function connectionError(error: unknown): Error {
  return withFailureKind(new Error(errorText(error) || 'the connection was lost'), 'silent');
}
