import 'reflect-metadata';
import type { LockedMethod } from './locked-method.js';

const METADATA_KEY = Symbol.for('nestjs-distributed-lock/methods with @Locked');

/** Returns the locked methods that the class of `prototype` declares or inherits. */
export function getLockedMethods(prototype: object): readonly LockedMethod[] {
  const methods: unknown = Reflect.getMetadata(METADATA_KEY, prototype);
  return Array.isArray(methods) ? methods : [];
}

export function addLockedMethod(method: LockedMethod): void {
  const { target } = method.declaration;
  Reflect.defineMetadata(METADATA_KEY, [...getLockedMethods(target), method], target);
}

/** Returns whether the class of `prototype` locks the method, or overrides one that is locked. */
export function hasLockedMethod(prototype: object, name: string): boolean {
  return getLockedMethods(prototype).some(({ declaration }) => declaration.name === name);
}
