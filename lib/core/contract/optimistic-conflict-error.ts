/**
 * Others changed the same rows first, each time. Nothing was written, and trying again later makes sense. No
 * `LockError`, because nobody holds anything.
 */
export class OptimisticConflictError extends Error {
  readonly code = 'OPTIMISTIC_CONFLICT';

  constructor(
    message: string,
    /** How often the work ran. */
    readonly attempts: number,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}
