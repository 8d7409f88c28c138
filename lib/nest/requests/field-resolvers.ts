import type { Method } from '../../decorators/declaration.js';
import { replaceHandler, throwWithoutDetails } from './replaced-handlers.js';

/**
 * Replaces the resolver of a field by one whose lock errors have no keys, hosts and processes. Nest runs interceptors
 * and filters for fields only with `fieldResolverEnhancers`.
 */
export function wrapFieldResolver(prototype: object, name: string, resolver: Method): void {
  replaceHandler(prototype, name, resolver, function (this: unknown, ...args: unknown[]): unknown {
    try {
      const result: unknown = Reflect.apply(resolver, this, args);
      return result instanceof Promise ? result.catch(throwWithoutDetails) : result;
    } catch (error) {
      return throwWithoutDetails(error);
    }
  });
}
