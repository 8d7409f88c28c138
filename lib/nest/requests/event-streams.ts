import { catchError, isObservable } from 'rxjs';
import type { Method } from '../../decorators/declaration.js';
import { replaceHandler, throwWithoutDetails } from './replaced-handlers.js';

/**
 * Replaces the handler of an event stream by one whose lock errors have no keys, hosts and processes. Nest sends the
 * messages of these errors to clients without calling a filter.
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
