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
import { PlaceholderResolver, type ValueReader } from './placeholder-resolver.js';
import { type KeyTemplate, parseTemplate, type PlaceholderPath } from './key-template.js';
import { markAsClientError } from '../requests/lock-answers.js';
import { isObject } from '../../decorators/is-object.js';

export type KeyFunction<Args extends unknown[] = never[]> = (...args: Args) => string | readonly WantedKey[];
export type KeySource = string | readonly WantedKey[] | KeyFunction;

type KeyRenderer<Key> = (...input: Parameters<ValueReader>) => Key;

/** Maximum length of a value before it is encoded, the same as that of a key. */
const MAX_VALUE_LENGTH = 4096;
/** Pattern of text that needs no percent-encoding. Excludes `_ : / | #`, which templates have between placeholders. */
const PLAIN_TEXT_PATTERN = /^[\p{L}\p{M}\p{N}.@-]*$/u;

/** The keys that a decorated method locks. `resolve` returns the keys for the arguments of a call. */
export class LockedKeys {
  readonly #makeKeys: (instance: object, ...input: Parameters<ValueReader>) => readonly WantedKey[];
  /** Templates of the keys; none where a function makes the keys. */
  readonly templates: readonly KeyTemplate[] = [];
  readonly #resolver: PlaceholderResolver;
  readonly #declaredKeys: readonly WantedKey[] = [];

  constructor(source: KeySource, declaration: Declaration, method: Method, methodLabel: string) {
    const resolver = new PlaceholderResolver(declaration, method, methodLabel);
    this.#resolver = resolver;
    if (typeof source === 'function') {
      this.#makeKeys = (instance, args) => toValidKeys(Reflect.apply(source, instance, args));
      return;
    }
    this.#declaredKeys = typeof source === 'string' ? [source] : source;
    if (this.#declaredKeys.length === 0)
      throw new LockConfigurationError(`${methodLabel} is locked by no key at all`, 'key');
    this.templates = this.#declaredKeys.map((key) => parseTemplate(isKeyClaim(key) ? key.key : key));
    const renderers = this.templates.map((template, index): KeyRenderer<WantedKey> => {
      const render = compileTemplate(template, methodLabel, (path) => resolver.getValueSource(path));
      const declaredKey = this.#declaredKeys[index];
      if (!isKeyClaim(declaredKey)) return render;
      return (args, context) => ({ ...declaredKey, key: render(args, context) });
    });
    this.#makeKeys = (_instance, args, context) => renderers.map((render) => render(args, context));
  }

  /**
   * @param context context of the request whose handler the method is; `undefined` for a call by other code
   * @throws LockConfigurationError with the option `key`; anything that a key function throws
   */
  resolve(instance: object, args: readonly unknown[], context: ExecutionContext | undefined): readonly WantedKey[] {
    try {
      return this.#makeKeys(instance, args, context);
    } catch (error) {
      // The arguments of a handler come from a client, so an unusable value is the client's error. Instances of classes
      // are the application's error, because no client can send them.
      if (context && isLockError(error, 'LOCK_CONFIGURATION') && !classInstanceErrors.has(error))
        markAsClientError(error);
      throw error;
    }
  }

  /** @throws LockConfigurationError when the options of a key contradict those of the whole call */
  assertClaimsMatchOptions(
    options: AcquireOptions,
    resolveOptions: (options?: AcquireOptions) => Readonly<ResolvedOptions>,
  ): void {
    if (this.#declaredKeys.some(isKeyClaim)) resolveKeys(this.#declaredKeys, options, resolveOptions);
  }

  /** Always `false` for a key function, although it may return several keys. */
  get hasSeveralTemplates(): boolean {
    return this.templates.length > 1;
  }

  /** @throws LockConfigurationError when a template can never be resolved */
  validate(method: object, classRef: object, routePrefixes?: readonly string[]): void {
    for (const template of this.templates) {
      this.#resolver.assertNoForeignPlaceholder(template);
      for (const { path } of template.placeholders)
        this.#resolver.assertResolvable(path, method, classRef, routePrefixes);
    }
  }
}

/**
 * Returns a function that puts the values of a call into the template.
 * It throws a `LockConfigurationError` that names the placeholder without a usable value.
 */
export function compileTemplate(
  { source, leadingText, placeholders }: KeyTemplate,
  methodLabel: string,
  getValueSource: (path: PlaceholderPath) => number | ValueReader,
): KeyRenderer<string> {
  const compiledPlaceholders = placeholders.map(({ path, textAfter }) => {
    const [delimiter = ''] = textAfter;
    const placeholderLabel = `:${path.join('.')} in ${quote(source)} (${methodLabel})`;
    return { valueSource: getValueSource(path), textAfter, delimiter, placeholderLabel };
  });
  return (args, context) => {
    let key = leadingText;
    for (const { valueSource, textAfter, delimiter, placeholderLabel } of compiledPlaceholders) {
      const value = typeof valueSource === 'number' ? args[valueSource] : valueSource(args, context);
      key += encodeValue(value, delimiter, placeholderLabel) + textAfter;
    }
    assertKey(key);
    return key;
  };
}

/**
 * Encodes a value so that different values of the placeholders give different keys. The encoded text never contains
 * `delimiter`, the next character of the template. `1`, `1n` and `'1'` are one value, because route parameters are
 * strings.
 * @throws LockConfigurationError with the option `key`: the value is missing, empty, too long or not a plain value
 */
function encodeValue(value: unknown, delimiter: string, placeholderLabel: string): string {
  const text = toText(value);
  if (text === undefined) {
    const error = createKeyError(`${placeholderLabel} is ${describeType(value)}, which names no lock`);
    if (isClassInstance(value)) classInstanceErrors.add(error);
    throw error;
  }
  if (text === '') throw createKeyError(`${placeholderLabel} is empty: all such callers would share one lock`);
  if (text.length > MAX_VALUE_LENGTH)
    throw createKeyError(`${placeholderLabel} has ${text.length} characters: too long for a key`);
  if (!text.isWellFormed()) throw createKeyError(`${placeholderLabel} is no well-formed Unicode: ${quote(text)}`);
  if (PLAIN_TEXT_PATTERN.test(text) && (delimiter === '' || !text.includes(delimiter))) return text;
  return Array.from(text, (char) =>
    char !== delimiter && PLAIN_TEXT_PATTERN.test(char) ? char : percentEncode(char),
  ).join('');
}

/** Errors of `encodeValue` about instances of classes. */
const classInstanceErrors = new WeakSet<object>();

/** Returns the value as text: for a Date, an ObjectId and the like, the text that `toJSON` returns. */
function toText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint' || typeof value === 'boolean' || Number.isFinite(value)) return String(value);
  if (!hasToJson(value)) return undefined;
  const text = value.toJSON();
  return typeof text === 'string' ? text : undefined;
}

function hasToJson(value: unknown): value is { toJSON(): unknown } {
  return isObject(value) && 'toJSON' in value && typeof value.toJSON === 'function';
}

function isClassInstance(value: unknown): boolean {
  const prototype: unknown = isObject(value) && !Array.isArray(value) ? Object.getPrototypeOf(value) : null;
  return prototype !== null && prototype !== Object.prototype;
}

function percentEncode(char: string): string {
  return Array.from(Buffer.from(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}

function describeType(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'number') return String(value);
  if (Array.isArray(value)) return 'an array';
  if (isClassInstance(value)) return `a ${value.constructor.name}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function createKeyError(message: string): LockConfigurationError {
  return new LockConfigurationError(message, 'key');
}

/** @throws LockConfigurationError when a key function returned no valid key */
function toValidKeys(result: unknown): readonly WantedKey[] {
  const keys: readonly unknown[] = Array.isArray(result) ? result : [result];
  if (keys.length === 0) throw new LockConfigurationError('a key function returned no key at all', 'key');
  return keys.map((key) => {
    if (isKeyClaim(key)) assertKey(key.key);
    else assertKey(key);
    return key;
  });
}

function isKeyClaim(value: unknown): value is KeyClaim {
  return isObject(value) && 'key' in value;
}
