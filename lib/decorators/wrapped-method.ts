import 'reflect-metadata';
import { sharedState } from '../core/index.js';
import type { Method } from './declaration.js';

const wrapped = sharedState('wrapped methods', () => new WeakMap<Method, Method>());

/**
 * Gives `wrapper` the name, length and metadata of `method`, because routes, schedules and documentation are found by
 * them. `unwrapped` finds the method again, whose source names its arguments.
 */
export function wrapMethod<Wrapper extends Method>(method: Method, wrapper: Wrapper): Wrapper {
  for (const property of ['name', 'length'] as const) {
    Object.defineProperty(wrapper, property, { value: method[property], configurable: true });
  }
  for (const key of Reflect.getOwnMetadataKeys(method)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), wrapper);
  }
  wrapped.set(wrapper, method);
  return wrapper;
}

/** The method as its class declares it, below all wrappers of this library. */
export function unwrapped(method: Method): Method {
  let inner = method;
  for (let next = wrapped.get(inner); next; next = wrapped.get(inner)) inner = next;
  return inner;
}
