import type { FailureKind } from '../../core/index.js';

/**
 * `not-sent`: the server has seen nothing of it. `unknown`: it may have been carried out, or may still be. `protocol`:
 * what came back is no answer of a memcached server. `refused`: the server answered that it cannot.
 */
export type MemcachedErrorKind = 'not-sent' | 'unknown' | 'protocol' | 'refused';

/** Why a server did not do what it was asked; the `cause` of a `LockBackendError`. */
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

const SHOWN_LENGTH = 100;

/** An answer that makes no sense here. Later answers on that connection make none either. */
export function unexpected(line: string): MemcachedError {
  const shown = line.length > SHOWN_LENGTH ? `${line.slice(0, SHOWN_LENGTH)}…` : line;
  return new MemcachedError('protocol', `no answer of a memcached server: ${JSON.stringify(shown)}`);
}
