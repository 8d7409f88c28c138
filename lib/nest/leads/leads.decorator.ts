import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import { LockConfigurationError, type LeadOptions, type LockHandle } from '../../core/index.js';
import { assertLegacyDecorator, type Declaration, isMethod, labelOf } from '../../decorators/declaration.js';
import { DEFAULT_BACKEND, getLockServiceToken } from '../inject-lock-service.decorator.js';
import { parseTemplate } from '../keys/key-template.js';

export interface LeadsOptions extends Omit<LeadOptions, 'signal'> {
  key: string;
  /** The name of one of several backends. @default 'default' */
  backend?: string;
}

/** A method that runs while its process leads. */
export interface LeadsMethod {
  readonly declaration: Declaration;
  readonly key: string;
  readonly backend: string;
  readonly options: LeadOptions;
  /** Where an instance has its `LockService`. */
  readonly property: symbol;
}

const METHODS = Symbol.for('nestjs-distributed-lock/methods with @Leads');

/**
 * Has one instance of the application at a time run the method, from the bootstrap to the shutdown, as
 * `LockService.lead` does. It gets the term, and returns soon after `term.signal` aborts. For a method of a provider
 * that exists once. `LockService.leadership(key)` tells whether this process leads.
 * @throws LockConfigurationError at decoration: a key that can never be one, or with placeholders; a static method
 */
export function Leads(office: string | LeadsOptions) {
  return <Target extends (term: LockHandle) => unknown>(
    target: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Target>,
  ): void => {
    assertLegacyDecorator('@Leads', name);
    const { key, backend = DEFAULT_BACKEND, ...options } = typeof office === 'object' ? office : { key: office };
    const declaration = { target, name };
    const label = labelOf(declaration);
    const method: unknown = descriptor?.value;
    if (typeof target === 'function' || !isMethod(method)) {
      throw new LockConfigurationError(`@Leads belongs on a method of instances, which ${label} is not`, 'method');
    }
    const property = Symbol(`LockService of @Leads ${label}, of the backend ${backend}`);
    Inject(getLockServiceToken(backend))(target, property);
    const added: LeadsMethod = { declaration, key: plainKey(key, label), backend, options, property };
    Reflect.defineMetadata(METHODS, [...leadsMethods(target), added], target);
  };
}

/** Those that the class of `prototype` declares or inherits; of one that is declared again the last. */
export function leadsMethods(prototype: object): readonly LeadsMethod[] {
  const methods: unknown = Reflect.getMetadata(METHODS, prototype);
  const all: readonly LeadsMethod[] = Array.isArray(methods) ? methods : [];
  return [...new Map(all.map((method) => [method.declaration.name, method])).values()];
}

/** Written as for `@Locked`, so that a colon means the same in both. */
function plainKey(key: unknown, label: string): string {
  if (typeof key !== 'string') throw new LockConfigurationError(`the key of @Leads ${label} must be a string`, 'key');
  const { prefix, placeholders } = parseTemplate(key);
  if (placeholders.length === 0) return prefix;
  const why = 'has placeholders, and nobody calls the method with arguments: write "\\\\:" for a colon';
  throw new LockConfigurationError(`the key "${key}" of @Leads ${label} ${why}`, 'key');
}
