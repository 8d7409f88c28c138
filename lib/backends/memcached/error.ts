import type { FailureKind } from '../../core/index.js';

/**
 * Kind of failure. `not-sent`: the server has seen nothing of the request. `unknown`: the request may have been carried
 * out, or may still be. `protocol`: the reply is not one that a memcached server sends. `refused`: the server answered
 * that it cannot carry the request out.
 */
export type MemcachedErrorKind = 'not-sent' | 'unknown' | 'protocol' | 'refused';

/** Failure of a request to a memcached server; the `cause` of a `LockBackendError`. */
export class MemcachedError extends Error {
  override readonly name = 'MemcachedError';

  constructor(
    readonly kind: MemcachedErrorKind,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }

  get failureKind(): FailureKind {
    return this.kind === 'not-sent' || this.kind === 'unknown' ? 'silent' : 'refuses';
  }
}

const MAX_SHOWN_LENGTH = 100;

export function unexpectedReplyError(line: string): MemcachedError {
  const shownLine = line.length > MAX_SHOWN_LENGTH ? `${line.slice(0, MAX_SHOWN_LENGTH)}…` : line;
  return new MemcachedError('protocol', `no answer of a memcached server: ${JSON.stringify(shownLine)}`);
}
