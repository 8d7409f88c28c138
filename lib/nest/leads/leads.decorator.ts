import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import { LockConfigurationError, type LeadOptions, type LockHandle } from '../../core/index.js';
import { assertLegacyDecorator, type Declaration, isMethod, getMethodLabel } from '../../decorators/declaration.js';
import { DEFAULT_BACKEND, getLockServiceToken } from '../inject-lock-service.decorator.js';
import { parseTemplate } from '../keys/key-template.js';

export interface LeadsOptions extends Omit<LeadOptions, 'signal'> {
  /** Key of the lock that the leader holds. */
  key: string;
  /** Name of one of several backends. @default 'default' */
  backend?: string;
}

export interface LeadsMethod {
  readonly declaration: Declaration;
  readonly key: string;
  readonly backend: string;
  readonly options: LeadOptions;
  /** Property in which an instance has its `LockService`. */
  readonly serviceProperty: symbol;
}

const METADATA_KEY = Symbol.for('nestjs-distributed-lock/methods with @Leads');

/**
 * Runs the method in one process of the application at a time, from the bootstrap to the shutdown, as
 * `LockService.lead` does. The method gets the handle of its term, and must return soon after `term.signal` aborts. The
 * method must belong to a singleton provider. `LockService.leadership(key)` tells whether this process leads.
 * @throws LockConfigurationError at decoration: an invalid key, or one with placeholders; a static method
 */
export function Leads(keyOrOptions: string | LeadsOptions) {
  return <Signature extends (term: LockHandle) => unknown>(
    target: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Signature>,
  ): void => {
    assertLegacyDecorator('@Leads', name);
    const {
      key,
      backend = DEFAULT_BACKEND,
      ...options
    } = typeof keyOrOptions === 'object' ? keyOrOptions : { key: keyOrOptions };
    const declaration = { target, name };
    const label = getMethodLabel(declaration);
    const method: unknown = descriptor?.value;
    if (typeof target === 'function' || !isMethod(method)) {
      throw new LockConfigurationError(`@Leads belongs on a method of instances, which ${label} is not`, 'method');
    }
    const serviceProperty = Symbol(`LockService of @Leads ${label}, of the backend ${backend}`);
    Inject(getLockServiceToken(backend))(target, serviceProperty);
    const leadsMethod: LeadsMethod = { declaration, key: parseKey(key, label), backend, options, serviceProperty };
    Reflect.defineMetadata(METADATA_KEY, [...getLeadsMethods(target), leadsMethod], target);
  };
}

/** Returns the methods with `@Leads` that the class of `prototype` declares or inherits, without overridden ones. */
export function getLeadsMethods(prototype: object): readonly LeadsMethod[] {
  const methods: unknown = Reflect.getMetadata(METADATA_KEY, prototype);
  const declaredMethods: readonly LeadsMethod[] = Array.isArray(methods) ? methods : [];
  return [...new Map(declaredMethods.map((method) => [method.declaration.name, method])).values()];
}

/** @throws LockConfigurationError when the key is invalid or has placeholders; a plain colon is written `\\:` */
function parseKey(key: unknown, label: string): string {
  if (typeof key !== 'string') throw new LockConfigurationError(`the key of @Leads ${label} must be a string`, 'key');
  const { leadingText, placeholders } = parseTemplate(key);
  if (placeholders.length === 0) return leadingText;
  const reason = 'has placeholders, and nobody calls the method with arguments: write "\\\\:" for a colon';
  throw new LockConfigurationError(`the key "${key}" of @Leads ${label} ${reason}`, 'key');
}
