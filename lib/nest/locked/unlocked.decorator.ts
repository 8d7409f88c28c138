import { SetMetadata } from '@nestjs/common';
import { LockConfigurationError } from '../../core/index.js';
import { ownerOf } from '../../decorators/declaration.js';
import type { LockedMethod } from './locked-method.js';

const UNLOCKED = Symbol.for('nestjs-distributed-lock/a method with @Unlocked');

/**
 * For a method that overrides one with `@Locked` and needs no lock, or calls `super.method()`, which takes it. Without
 * this and without `@Locked` such a method stops the application.
 */
export function Unlocked(): MethodDecorator {
  return SetMetadata(UNLOCKED, true);
}

/** @throws LockConfigurationError when the class of `prototype` overrides one of `methods` without either decorator */
export function assertNotUnlocked(prototype: object, methods: readonly LockedMethod[]): void {
  for (const { declaration, label } of methods) {
    const { target, name } = declaration;
    const owner = ownerOf(prototype, name);
    if (owner === undefined || owner === target) continue;
    const isLocked = methods.some((other) => other.declaration.target === owner && other.declaration.name === name);
    const method: unknown = Object.getOwnPropertyDescriptor(owner, name)?.value;
    if (isLocked || typeof method !== 'function' || Reflect.hasMetadata(UNLOCKED, method) || isTestDouble(method))
      continue;
    throw new LockConfigurationError(
      `${owner.constructor.name}.${String(name)} overrides ${label}, which has @Locked, and would run without a lock: give it ` +
        '@Locked too, or @Unlocked() if it needs no lock or calls super',
      'method',
    );
  }
}

/** Spies and mocks of jest, vitest and sinon stand for a method on purpose. */
function isTestDouble(method: object): boolean {
  return ['_isMockFunction', 'isSinonProxy'].some((mark) => Reflect.get(method, mark) === true);
}
