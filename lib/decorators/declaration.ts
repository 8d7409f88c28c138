import { LockConfigurationError } from '../core/index.js';

/** Name of a method, and the prototype that declares it. */
export interface Declaration {
  readonly target: object;
  readonly name: string | symbol;
}

export type Method = (...args: never[]) => unknown;

export function isMethod(value: unknown): value is Method {
  return typeof value === 'function';
}

/**
 * Throws when a decorator was compiled for the TC39 standard, which lacks parameter decorators and type metadata.
 * @param secondArgument the second argument of the decorator: an object only in the TC39 standard
 * @throws LockConfigurationError
 */
export function assertLegacyDecorator(decorator: string, secondArgument: unknown): void {
  if (typeof secondArgument !== 'object' || secondArgument === null) return;
  const message = `${decorator} was called as a decorator of the new standard, which Nest does not know: set "experimentalDecorators" and "emitDecoratorMetadata" in tsconfig.json`;
  throw new LockConfigurationError(message, 'experimentalDecorators');
}

export function getMethodLabel({ target, name }: Declaration): string {
  return `${target.constructor.name}.${String(name)}`;
}

export function findDeclaringPrototype(prototype: object, name: string | symbol): object | undefined {
  for (let candidate: object | null = prototype; candidate; candidate = Object.getPrototypeOf(candidate)) {
    if (Object.hasOwn(candidate, name)) return candidate;
  }
  return undefined;
}
