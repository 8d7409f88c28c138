import 'reflect-metadata';
import type { LockedMethod } from './locked-method.js';

const METHODS = Symbol('methods that @Locked stands before');

/** Those that the class of `prototype` declares or inherits. */
export function lockedMethods(prototype: object): readonly LockedMethod[] {
  const methods: unknown = Reflect.getMetadata(METHODS, prototype);
  return Array.isArray(methods) ? methods : [];
}

export function addLockedMethod(method: LockedMethod): void {
  const { target } = method.declaration;
  Reflect.defineMetadata(METHODS, [...lockedMethods(target), method], target);
}
