import type { ExecutionContext } from '@nestjs/common';
import {
  type AcquireOptions,
  assertKey,
  isLockError,
  type KeyClaim,
  LockConfigurationError,
  quote,
  type ResolvedOptions,
  resolveKeys,
  type WantedKey,
} from '../../core/index.js';
import type { Declaration, Method } from '../../decorators/declaration.js';
import { KeyNames, type ReadValue } from './key-names.js';
import { type KeyTemplate, parseTemplate, type Path } from './key-template.js';
import { blameRequest } from '../requests/lock-answers.js';
import { isObject } from '../../decorators/is-object.js';

export type KeyFunction<Args extends unknown[] = never[]> = (...args: Args) => string | readonly WantedKey[];
export type KeySource = string | readonly WantedKey[] | KeyFunction;

type Call = Parameters<ReadValue>;

/** Longer than any key may be: refused before it is encoded. */
const LONGEST_VALUE = 4096;
/** Everything else, above all the separators `_ : / | #`, is percent-encoded. */
const PLAIN = /^[\p{L}\p{M}\p{N}.@-]*$/u;

/** The keys that the calls of one method take, by the templates or the function of `@Locked`. */
export class LockedKeys {
  readonly #keysOf: (instance: object, ...call: Call) => readonly WantedKey[];
  /** None where a function makes the keys. */
  readonly templates: readonly KeyTemplate[] = [];
  readonly #names: KeyNames;
  readonly #declared: readonly WantedKey[] = [];

  constructor(source: KeySource, declaration: Declaration, method: Method, owner: string) {
    const names = new KeyNames(declaration, method, owner);
    this.#names = names;
    if (typeof source === 'function') {
      this.#keysOf = (instance, args) => assertedKeys(Reflect.apply(source, instance, args));
      return;
    }
    this.#declared = typeof source === 'string' ? [source] : source;
    if (this.#declared.length === 0) throw new LockConfigurationError(`${owner} is locked by no key at all`, 'key');
    this.templates = this.#declared.map((each) => parseTemplate(isKeyClaim(each) ? each.key : each));
    const renderers = this.templates.map((template, place) => {
      const render = compile(template, owner, (path) => names.reader(path));
      const declared = this.#declared[place];
      return isKeyClaim(declared) ? (...call: Call): WantedKey => ({ ...declared, key: render(...call) }) : render;
    });
    this.#keysOf = (_, ...call) => renderers.map((render) => render(...call));
  }

  /**
   * As they were given. The context is that of the request that the call handles.
   * @throws LockConfigurationError with the option `key`; what a key function throws
   */
  of(instance: object, args: readonly unknown[], context: ExecutionContext | undefined): readonly WantedKey[] {
    try {
      return this.#keysOf(instance, args, context);
    } catch (error) {
      // A handler's arguments come from outside. Elsewhere it is the application's own mistake, as instances are.
      if (context && isLockError(error, 'LOCK_CONFIGURATION') && !isAboutInstance(error)) blameRequest(error);
      throw error;
    }
  }

  /** @throws LockConfigurationError when what is wanted of a key can never work with the other options */
  assertClaims(options: AcquireOptions, resolve: (options?: AcquireOptions) => Readonly<ResolvedOptions>): void {
    if (this.#declared.some(isKeyClaim)) resolveKeys(this.#declared, options, resolve);
  }

  /** Whether the method has several keys, as far as that is known before a call. */
  get areSeveral(): boolean {
    return this.templates.length > 1;
  }

  /** @throws LockConfigurationError when a template can never be resolved */
  validate(method: object, controller: object, prefixes?: readonly string[]): void {
    for (const { placeholders } of this.templates) {
      for (const { path } of placeholders) this.#names.assertResolvable(path, method, controller, prefixes);
    }
  }
}

/**
 * The function that makes a template's key for a call.
 * @throws LockConfigurationError with the option `key`, naming the placeholder without a usable value
 */
export function compile(
  { source, start, placeholders }: KeyTemplate,
  owner: string,
  readerOf: (path: Path) => number | ReadValue,
): (...call: Call) => string {
  const parts = placeholders.map(({ path, textBehind }) => {
    const [delimiter = ''] = textBehind;
    const label = `:${path.join('.')} in ${quote(source)} (${owner})`;
    return { read: readerOf(path), textBehind, delimiter, label };
  });
  return (args, context) => {
    let key = start;
    for (const { read, textBehind, delimiter, label } of parts) {
      const value = typeof read === 'number' ? args[read] : read(args, context);
      key += encodeValue(value, delimiter, label) + textBehind;
    }
    assertKey(key);
    return key;
  };
}

/**
 * Encodes a value for a key. Two different values never look alike, nor does one that `delimiter`, the next character,
 * continues: no two lists of arguments share a key. `1`, `1n` and `'1'` are one value: routes have strings for numbers.
 * @throws LockConfigurationError with the option `key`: the value is missing, empty, too long or not a plain value
 */
function encodeValue(value: unknown, delimiter: string, label: string): string {
  const text = textOf(value);
  if (text === undefined) {
    const error = refused(`${label} is ${kindOf(value)}, which names no lock`);
    if (isInstance(value)) aboutInstances.add(error);
    throw error;
  }
  if (text === '') throw refused(`${label} is empty: all such callers would share one lock`);
  if (text.length > LONGEST_VALUE) throw refused(`${label} has ${text.length} characters: too long for a key`);
  if (!text.isWellFormed()) throw refused(`${label} is no well-formed Unicode: ${quote(text)}`);
  if (PLAIN.test(text) && (delimiter === '' || !text.includes(delimiter))) return text;
  return Array.from(text, (char) => (char !== delimiter && PLAIN.test(char) ? char : escape(char))).join('');
}

/** Errors about instances of classes, which no client can send. */
const aboutInstances = new WeakSet<object>();

function isAboutInstance(error: object): boolean {
  return aboutInstances.has(error);
}

/** Dates, ObjectIds and others are the text that their class writes for JSON. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint' || typeof value === 'boolean' || Number.isFinite(value)) return String(value);
  if (!hasText(value)) return undefined;
  const text = value.toJSON();
  return typeof text === 'string' ? text : undefined;
}

function hasText(value: unknown): value is { toJSON(): unknown } {
  return isObject(value) && 'toJSON' in value && typeof value.toJSON === 'function';
}

function isInstance(value: unknown): boolean {
  const prototype: unknown = isObject(value) && !Array.isArray(value) ? Object.getPrototypeOf(value) : null;
  return prototype !== null && prototype !== Object.prototype;
}

function escape(char: string): string {
  return Array.from(Buffer.from(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'number') return String(value);
  if (Array.isArray(value)) return 'an array';
  if (isInstance(value)) return `a ${value.constructor.name}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function refused(message: string): LockConfigurationError {
  return new LockConfigurationError(message, 'key');
}

function assertedKeys(found: unknown): readonly WantedKey[] {
  const keys: readonly unknown[] = Array.isArray(found) ? found : [found];
  if (keys.length === 0) throw new LockConfigurationError('a key function returned no key at all', 'key');
  return keys.map((key) => {
    if (isKeyClaim(key)) assertKey(key.key);
    else assertKey(key);
    return key;
  });
}

/** The core checks the rest of it. */
function isKeyClaim(value: unknown): value is KeyClaim {
  return isObject(value) && 'key' in value;
}
