import { LockConfigurationError } from '../core/index.js';

/** The prototype that a method is declared on, and its name. */
export interface Declaration {
  readonly target: object;
  readonly name: string | symbol;
}

export type Method = (...args: never[]) => unknown;

export function isMethod(value: unknown): value is Method {
  return typeof value === 'function';
}

/**
 * @param context the second argument of a decorator, which is an object in the new standard's
 * @throws LockConfigurationError: those decorators have no metadata, and no decorators of parameters
 */
export function assertLegacyDecorator(decorator: string, context: unknown): void {
  if (typeof context !== 'object' || context === null) return;
  const why = `${decorator} was called as a decorator of the new standard, which Nest does not know: set "experimentalDecorators" and "emitDecoratorMetadata" in tsconfig.json`;
  throw new LockConfigurationError(why, 'experimentalDecorators');
}

/** `SaleService.buy`, for messages. */
export function labelOf({ target, name }: Declaration): string {
  return `${target.constructor.name}.${String(name)}`;
}

/** The prototype, `prototype` itself or one that it inherits from, that has a method of its own by this name. */
export function ownerOf(prototype: object, name: string | symbol): object | undefined {
  for (let owner: object | null = prototype; owner; owner = Object.getPrototypeOf(owner)) {
    if (Object.hasOwn(owner, name)) return owner;
  }
  return undefined;
}
