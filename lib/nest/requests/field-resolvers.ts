import { type Method, ownerOf } from '../../decorators/declaration.js';
import { wrapMethod } from '../../decorators/wrapped-method.js';
import { isAnsweredError } from './lock-answers.js';
import { hideDetails } from './lock-exceptions.js';
import { currentRequest } from './request-scope.js';

const guarded = new WeakSet<object>();

/**
 * Has the resolver of a field, also an unlocked one that calls a locked service, show clients nothing of keys, hosts and
 * processes. Nest runs no interceptors and filters for fields, unless `fieldResolverEnhancers` says so.
 */
export function guardFieldResolver(prototype: object, name: string, resolver: Method): void {
  const owner = ownerOf(prototype, name);
  if (!owner || guarded.has(resolver)) return;
  const guard = wrapMethod(resolver, function (this: unknown, ...args: unknown[]): unknown {
    try {
      const result: unknown = Reflect.apply(resolver, this, args);
      return result instanceof Promise ? result.catch(throwSafely) : result;
    } catch (error) {
      return throwSafely(error);
    }
  });
  guarded.add(guard);
  Object.defineProperty(owner, name, { ...Object.getOwnPropertyDescriptor(owner, name), value: guard });
}

/** Throws `error`, without its details where no interceptor will translate it. */
export function throwSafely(error: unknown): never {
  if (!currentRequest() && isAnsweredError(error)) hideDetails(error);
  throw error;
}
