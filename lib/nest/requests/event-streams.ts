import { catchError, isObservable } from 'rxjs';
import type { Method } from '../../decorators/declaration.js';
import { replaceHandler, throwWithoutDetails } from './replaced-handlers.js';

/**
 * Removes keys, hosts and processes from the lock errors with which a stream of events fails. Nest sends clients the
 * messages of these errors, and asks no filter.
 */
export function wrapEventStream(prototype: object, name: string, handler: Method): void {
  replaceHandler(prototype, name, handler, function (this: unknown, ...args: unknown[]): unknown {
    const result: unknown = Reflect.apply(handler, this, args);
    return result instanceof Promise ? result.then(hideDetailsOfErrors) : hideDetailsOfErrors(result);
  });
}

function hideDetailsOfErrors(result: unknown): unknown {
  return isObservable(result) ? result.pipe(catchError(throwWithoutDetails)) : result;
}
