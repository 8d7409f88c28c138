import 'reflect-metadata';

type Method = (...args: never[]) => unknown;

const wrapped = new WeakMap<Method, Method>();

/**
 * Gives `wrapper` the name, length and metadata of `method`, for whoever finds routes, schedules and documentation by them;
 * and lets us find the method again, by whose source its arguments are named.
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

/** The method as its class declares it, under all the wrappers of ours. */
export function unwrapped(method: Method): Method {
  let inner = method;
  for (let next = wrapped.get(inner); next; next = wrapped.get(inner)) inner = next;
  return inner;
}
