import 'reflect-metadata';
import { sharedState } from '../core/index.js';
import type { Method } from './declaration.js';

const methodsByWrapper = sharedState('wrapped methods', () => new WeakMap<Method, Method>());

/**
 * Gives `wrapper` the name, length and metadata of `method`, because Nest finds routes, schedules and documentation by
 * them. Records `method` for `unwrapMethod`, because only the source of `method` has the names of the arguments.
 */
export function wrapMethod<Wrapper extends Method>(method: Method, wrapper: Wrapper): Wrapper {
  for (const property of ['name', 'length'] as const) {
    Object.defineProperty(wrapper, property, { value: method[property], configurable: true });
  }
  for (const key of Reflect.getOwnMetadataKeys(method)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), wrapper);
  }
  methodsByWrapper.set(wrapper, method);
  return wrapper;
}

export function unwrapMethod(method: Method): Method {
  const wrappedMethod = methodsByWrapper.get(method);
  return wrappedMethod ? unwrapMethod(wrappedMethod) : method;
}
