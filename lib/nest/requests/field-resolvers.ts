import { type Method, findDeclaringPrototype } from '../../decorators/declaration.js';
import { wrapMethod } from '../../decorators/wrapped-method.js';
import { isLockingError } from './lock-answers.js';
import { hideDetails } from './lock-exceptions.js';
import { currentRequest } from './request-scope.js';

const fieldResolverWrappers = new WeakSet<object>();

/**
 * Removes keys, hosts and processes from the lock errors that the resolver of a field throws. Nest runs interceptors
 * and filters for fields only with `fieldResolverEnhancers`.
 */
export function wrapFieldResolver(prototype: object, name: string, resolver: Method): void {
  const declaringPrototype = findDeclaringPrototype(prototype, name);
  if (!declaringPrototype || fieldResolverWrappers.has(resolver)) return;
  const wrapper = wrapMethod(resolver, function (this: unknown, ...args: unknown[]): unknown {
    try {
      const result: unknown = Reflect.apply(resolver, this, args);
      return result instanceof Promise ? result.catch(throwWithoutDetails) : result;
    } catch (error) {
      return throwWithoutDetails(error);
    }
  });
  fieldResolverWrappers.add(wrapper);
  Object.defineProperty(declaringPrototype, name, {
    ...Object.getOwnPropertyDescriptor(declaringPrototype, name),
    value: wrapper,
  });
}

/** Throws `error`, without its details when no interceptor will translate it. */
export function throwWithoutDetails(error: unknown): never {
  if (!currentRequest() && isLockingError(error)) hideDetails(error);
  throw error;
}
