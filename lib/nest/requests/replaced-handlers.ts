import { findDeclaringPrototype, type Method } from '../../decorators/declaration.js';
import { wrapMethod } from '../../decorators/wrapped-method.js';
import { isLibraryError } from './lock-answers.js';
import { hideDetails } from './lock-exceptions.js';
import { getCurrentRequest } from './request-scope.js';

const replacements = new WeakSet<object>();

/** Puts `replacement` in the place of `handler` on its prototype, unless `handler` is a replacement already. */
export function replaceHandler(prototype: object, name: string, handler: Method, replacement: Method): void {
  const declaringPrototype = findDeclaringPrototype(prototype, name);
  if (!declaringPrototype || replacements.has(handler)) return;
  const wrapper = wrapMethod(handler, replacement);
  replacements.add(wrapper);
  Object.defineProperty(declaringPrototype, name, {
    ...Object.getOwnPropertyDescriptor(declaringPrototype, name),
    value: wrapper,
  });
}

/** Throws `error`, without its details when no interceptor will translate it. */
export function throwWithoutDetails(error: unknown): never {
  if (!getCurrentRequest() && isLibraryError(error)) hideDetails(error);
  throw error;
}
