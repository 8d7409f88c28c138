import { Catch, type ExecutionContext } from '@nestjs/common';
import { LockError, OptimisticConflictError } from '../core/index.js';
import type { AnsweredError } from './lock-answers.js';
import { LockExceptionFilter } from './lock-exception.filter.js';
import { caughtTypes, filtersOf } from './method-metadata.js';

const claimed = new WeakSet<object>();

/** Nest picks a filter by `instanceof`, and asks it nothing: this lets only those through that were claimed. */
abstract class ClaimedError extends Error {
  static override [Symbol.hasInstance](error: unknown): boolean {
    return isAnsweredError(error) && claimed.has(error);
  }
}

/**
 * The filter that `@Locked` puts on its method, so that neither a gateway, nor a hybrid application, nor a global catch-all
 * filter hides what happened. It answers for what its method threw in applications that want that.
 */
@Catch(ClaimedError)
export class LockedExceptionFilter extends LockExceptionFilter {}

/** Has `LockedExceptionFilter` answer for `error`, unless the class of the handler has a filter for just such errors. */
export function claim(error: unknown, context: ExecutionContext): void {
  if (!isAnsweredError(error)) return;
  const types = filtersOf(context.getClass()).flatMap(caughtTypes);
  // A filter for everything, or for every Error, knows nothing of locks.
  const isNamed = types.some((type) => type !== Error && type !== Object && error instanceof type);
  if (!isNamed) claimed.add(error);
}

function isAnsweredError(error: unknown): error is AnsweredError {
  return error instanceof LockError || error instanceof OptimisticConflictError;
}
