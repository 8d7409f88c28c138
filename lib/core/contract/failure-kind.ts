import { isLockError } from './errors.js';

/**
 * Kind of a store's failure, which says what can be done about it:
 *
 * - `value`: the server is well and refuses this caller's key, right or value. Asking again brings the same answer, so the
 *   caller is told at once.
 * - `elsewhere`: the server is well, and another one has to be asked, such as the new primary.
 * - `refuses`: the server answers and carries nothing out.
 * - `silent`: no answer came, or there is no connection.
 */
export type FailureKind = 'value' | 'elsewhere' | 'refuses' | 'silent';

const FAILURE_KINDS: readonly FailureKind[] = ['value', 'elsewhere', 'refuses', 'silent'];

/** Error of a store with its kind. Errors without a kind count as `refuses`. */
export interface KindOfFailure {
  readonly failureKind: FailureKind;
}

/** Returns `error` with its kind. */
export function withFailureKind<Failure extends Error>(
  error: Failure,
  failureKind: FailureKind,
): Failure & KindOfFailure {
  return Object.assign(error, { failureKind });
}

/** Returns the kind of an error that a store has thrown, or of its cause. */
export function failureKindOf(error: unknown): FailureKind {
  if (isLockError(error, 'LOCK_CONFIGURATION')) return 'value';
  const { failureKind, cause }: { readonly failureKind?: unknown; readonly cause?: unknown } = Object(error);
  return FAILURE_KINDS.find((kind) => kind === failureKind) ?? (cause === undefined ? 'refuses' : failureKindOf(cause));
}
