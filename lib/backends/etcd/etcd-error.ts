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

/** An answer was given, and it says that the request was not carried out. After the others it may have been, or may still be. */
const REFUSALS: ReadonlySet<EtcdStatus> = new Set([
  'INVALID_ARGUMENT',
  'NOT_FOUND',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'UNIMPLEMENTED',
  'UNAUTHENTICATED',
]);

/** What etcd answered instead of doing what it was asked. Without a secret: etcd's messages name no user and no key. */
export class EtcdError extends Error {
  override readonly name = 'EtcdError';

  constructor(
    message: string,
    readonly code: EtcdStatus,
  ) {
    super(message);
  }

  /** `undefined` for success. */
  static of(status: unknown, message: unknown): EtcdError | undefined {
    const code = STATUS[Number(status)] ?? 'UNKNOWN';
    if (code === 'OK') return undefined;
    return new EtcdError(typeof message === 'string' && message !== '' ? decoded(message) : code, code);
  }
}

export function isRefusal(error: unknown): boolean {
  return error instanceof EtcdError && REFUSALS.has(error.code);
}

function decoded(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

/** Why a connection failed, in words that may be logged. `localhost` is tried as ::1 and as 127.0.0.1. */
export function connectionError(error: unknown): Error {
  const { message, errors }: { message?: unknown; errors?: unknown } = Object(error);
  if (message === '' && Array.isArray(errors))
    return new Error(errors.map((one) => connectionError(one).message).join('; '));
  return new Error(typeof message === 'string' && message !== '' ? message : 'the connection was lost');
}
