import { isLockError } from './errors.js';

/**
 * Kind of a store's failure, which decides how the core reacts:
 *
 * - `value`: the server works, but refuses this caller's key, value or access right. Another attempt would get the same
 *   answer, so that the caller gets the error at once.
 * - `elsewhere`: the server works, but another server has to be asked, such as the new primary.
 * - `refuses`: the server answers, but does not carry out the request.
 * - `silent`: no answer came, or there is no connection.
 */
export type FailureKind = 'value' | 'elsewhere' | 'refuses' | 'silent';

const FAILURE_KINDS: readonly FailureKind[] = ['value', 'elsewhere', 'refuses', 'silent'];

/** Error of a store with its kind. Errors without a kind count as `refuses`. */
export interface ErrorWithFailureKind {
  readonly failureKind: FailureKind;
}

/** Sets the kind of `error`, and returns the same object. */
export function withFailureKind<Failure extends Error>(
  error: Failure,
  failureKind: FailureKind,
): Failure & ErrorWithFailureKind {
  return Object.assign(error, { failureKind });
}

/** Maximum number of causes to look at: an application's error may be its own cause. */
const MAX_CAUSES = 10;

/** Returns the kind of an error that a store has thrown. An error without a kind has the kind of its `cause`. */
export function failureKindOf(error: unknown): FailureKind {
  let current = error;
  for (let depth = 0; depth <= MAX_CAUSES && current !== undefined; depth += 1) {
    if (isLockError(current, 'LOCK_CONFIGURATION')) return 'value';
    const { failureKind, cause }: { readonly failureKind?: unknown; readonly cause?: unknown } = Object(current);
    const knownKind = FAILURE_KINDS.find((kind) => kind === failureKind);
    if (knownKind) return knownKind;
    current = cause;
  }
  return 'refuses';
}
