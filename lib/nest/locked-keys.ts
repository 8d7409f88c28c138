import type { ExecutionContext } from '@nestjs/common';
import {
  type AcquireOptions,
  assertKey,
  Deadline,
  LockConfigurationError,
  type LockHandle,
  type LockService,
} from '../core/index.js';
import type { Declaration, Method } from '../decorators/declaration.js';
import { KeyNames } from './key-names.js';
import { KeyTemplate } from './key-template.js';
import { blameRequest } from './lock-answers.js';

export type KeyFunction<Args extends unknown[] = never[]> = (...args: Args) => string | readonly string[];
export type KeySource = string | readonly string[] | KeyFunction;

/** The keys that the calls of one method take, by the templates or the function of `@Locked`. */
export class LockedKeys {
  readonly #keysOf: (
    instance: object,
    args: readonly unknown[],
    context: ExecutionContext | undefined,
  ) => readonly string[];
  readonly #templates: readonly KeyTemplate[] = [];
  readonly #names: KeyNames;

  constructor(source: KeySource, declaration: Declaration, method: Method, owner: string) {
    this.#names = new KeyNames(declaration, method, owner);
    if (typeof source === 'function') {
      this.#keysOf = (instance, args) => assertedKeys(Reflect.apply(source, instance, args));
      return;
    }
    const templates = (typeof source === 'string' ? [source] : source).map((template) => new KeyTemplate(template));
    if (templates.length === 0) throw new LockConfigurationError(`${owner} is locked by no key at all`, 'key');
    this.#templates = templates;
    this.#keysOf = (_, args, context) =>
      templates.map((template) => template.render((path) => this.#names.value(path, args, context), owner));
  }

  /**
   * Sorted, and each key once. The context is that of the request that the call handles.
   * @throws LockConfigurationError with the option `key`; what a key function throws
   */
  of(instance: object, args: readonly unknown[], context: ExecutionContext | undefined): readonly string[] {
    try {
      return [...new Set(this.#keysOf(instance, args, context))].toSorted();
    } catch (error) {
      // A handler's arguments come from outside. Elsewhere it is the application's own mistake.
      if (context && error instanceof LockConfigurationError) blameRequest(error);
      throw error;
    }
  }

  /** Whether the method has several keys, as far as that is known before a call. */
  get areSeveral(): boolean {
    return this.#templates.length > 1;
  }

  /** @throws LockConfigurationError when a template can never be resolved */
  validate(method: object, controller: object, prefixes?: readonly string[]): void {
    for (const { paths } of this.#templates) {
      for (const path of paths) this.#names.assertResolvable(path, method, controller, prefixes);
    }
  }
}

function assertedKeys(found: unknown): readonly string[] {
  const keys: readonly unknown[] = Array.isArray(found) ? found : [found];
  if (keys.length === 0) throw new LockConfigurationError('a key function returned no key at all', 'key');
  return keys.map((key) => {
    assertKey(key);
    return key;
  });
}

/**
 * `withLock` for several keys: all of them or none, waiting at most `waitMs` altogether. Give them sorted: callers that
 * take keys in one order never wait for each other.
 */
export function withLocks<T>(
  service: LockService,
  keys: readonly string[],
  work: (locks: readonly LockHandle[]) => Promise<T>,
  options: AcquireOptions,
): Promise<T> {
  const [only = ''] = keys;
  if (keys.length === 1) return service.withLock(only, (lock) => work([lock]), options);
  const deadline = Deadline.after(options.waitMs ?? service.defaults.waitMs);
  const take = (locks: readonly LockHandle[]): Promise<T> => {
    const key = keys[locks.length];
    if (key !== undefined) {
      return service.withLock(key, (lock) => take([...locks, lock]), { ...options, waitMs: deadline.remainingMs });
    }
    for (const lock of locks) lock.throwIfLost();
    return work(locks);
  };
  return take([]);
}
