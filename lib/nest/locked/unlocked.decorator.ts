import { SetMetadata } from '@nestjs/common';
import { LockConfigurationError } from '../../core/index.js';
import { findDeclaringPrototype } from '../../decorators/declaration.js';
import { getDeclaration } from '../method-metadata.js';
import type { LockedMethod } from './locked-method.js';

const UNLOCKED_METADATA = Symbol.for('nestjs-distributed-lock/a method with @Unlocked');

/**
 * Marks a method that overrides a method with `@Locked`. The marked method needs no lock, or calls `super.method()`,
 * which takes the lock. The application does not start when an overriding method has neither `@Unlocked` nor `@Locked`.
 */
export function Unlocked(): MethodDecorator {
  return SetMetadata(UNLOCKED_METADATA, true);
}

/** @throws LockConfigurationError when the class of `prototype` overrides one of `methods` without either decorator */
export function assertOverridesLocked(prototype: object, methods: readonly LockedMethod[]): void {
  for (const { declaration, label } of methods) {
    const { target, name } = declaration;
    const declaringPrototype = findDeclaringPrototype(prototype, name);
    if (declaringPrototype === undefined || declaringPrototype === target) continue;
    const isLocked = methods.some(
      (other) => other.declaration.target === declaringPrototype && other.declaration.name === name,
    );
    const method: unknown = Object.getOwnPropertyDescriptor(declaringPrototype, name)?.value;
    if (isLocked || typeof method !== 'function') continue;
    // This method wraps the locked method: a tracing library has put the wrapper on the prototype of a subclass.
    if (getDeclaration(method) === declaration) continue;
    if (Reflect.hasMetadata(UNLOCKED_METADATA, method) || isTestDouble(method)) continue;
    throw new LockConfigurationError(
      `${declaringPrototype.constructor.name}.${String(name)} overrides ${label}, which has @Locked, and would run without a lock: give it ` +
        '@Locked too, or @Unlocked() if it needs no lock or calls super',
      'method',
    );
  }
}

/** Recognizes the spies and mocks of jest, vitest and sinon, which a test puts in place on purpose. */
function isTestDouble(method: object): boolean {
  return ['_isMockFunction', 'isSinonProxy'].some((property) => Reflect.get(method, property) === true);
}
