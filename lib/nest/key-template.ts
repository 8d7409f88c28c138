import { assertKey, LockConfigurationError, quote } from '../core/index.js';

/** `dto.sku` as `['dto', 'sku']`. */
export type Path = readonly [head: string, ...rest: string[]];

const PATH = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*(?:\.[\p{ID_Continue}$]+)*`;
/** Without braces a name ends before trailing underscores: `:a_:b` has two placeholders. */
const TOKEN = new RegExp(String.raw`\\(?<escaped>[\\:])|:\{(?<braced>[^}]*)\}|:(?<bare>${PATH}(?<!_))`, 'gu');
const WHOLE_PATH = new RegExp(`^${PATH}$`, 'u');

/** Longer than any key may be: refused before it is encoded. */
const LONGEST_VALUE = 4096;
/** Everything else, above all the separators `_ : / | #`, is percent-encoded. */
const PLAIN = /^[\p{L}\p{M}\p{N}.@-]*$/u;

/**
 * `lock_sale_:id`, taken apart once. A placeholder is `:id`, `:dto.sku` or, where letters follow, `:{id}st`; `\\:` is a
 * colon and `\\\\` a backslash; so is a colon that no name follows.
 */
export class KeyTemplate {
  readonly paths: readonly Path[];
  /** The texts before, between and after the paths: one more than there are paths. */
  readonly #literals: readonly string[];

  constructor(readonly source: string) {
    const paths: Path[] = [];
    let literal = '';
    const literals: string[] = [];
    let end = 0;
    for (const match of source.matchAll(TOKEN)) {
      const { escaped, braced, bare } = match.groups ?? {};
      literal += source.slice(end, match.index) + (escaped ?? '');
      end = match.index + match[0].length;
      if (escaped !== undefined) continue;
      literals.push(literal);
      literal = '';
      paths.push(this.#path(braced ?? bare ?? ''));
    }
    this.#literals = [...literals, literal + source.slice(end)];
    this.paths = paths;
    this.#refuseAmbiguity();
    assertKey(paths.length === 0 ? this.#literals[0] : `${this.#literals.join('')}:`);
  }

  /** @throws LockConfigurationError with the option `key`, naming the placeholder without a usable value */
  render(valueOf: (path: Path) => unknown, owner: string): string {
    let key = this.#literals[0] ?? '';
    for (const [index, path] of this.paths.entries()) {
      const literal = this.#literals[index + 1] ?? '';
      const [delimiter = ''] = literal;
      key +=
        encodeValue(valueOf(path), delimiter, () => `:${path.join('.')} in ${quote(this.source)} (${owner})`) + literal;
    }
    assertKey(key);
    return key;
  }

  #path(text: string): Path {
    if (!WHOLE_PATH.test(text)) throw this.#refused(`:{${text}} names no argument`);
    const [head = '', ...rest] = text.split('.');
    return [head, ...rest];
  }

  /** A delimiter ends each value. It is not `%`, which escapes values. */
  #refuseAmbiguity(): void {
    for (const literal of this.#literals.slice(1, -1)) {
      if (literal === '') throw this.#refused('two placeholders need something between them');
    }
    for (const literal of this.#literals.slice(1)) {
      if (literal.startsWith('%')) throw this.#refused('a "%" cannot follow a placeholder');
    }
  }

  #refused(why: string): LockConfigurationError {
    return refused(`${quote(this.source)} is no lock key: ${why}`);
  }
}

/**
 * Encodes a value for a key. Two different values never look alike, nor does one that `delimiter`, the next character,
 * continues: no two lists of arguments share a key. `1`, `1n` and `'1'` are one value: routes have strings for numbers.
 * @throws LockConfigurationError with the option `key`: the value is missing, empty, too long or not a plain value
 */
export function encodeValue(value: unknown, delimiter: string, describe: () => string): string {
  const text = textOf(value);
  if (text === undefined) throw refused(`${describe()} is ${kindOf(value)}, which names no lock`);
  if (text === '') throw refused(`${describe()} is empty: all such callers would share one lock`);
  if (text.length > LONGEST_VALUE) throw refused(`${describe()} has ${text.length} characters: too long for a key`);
  if (!text.isWellFormed()) throw refused(`${describe()} is no well-formed Unicode: ${quote(text)}`);
  if (PLAIN.test(text) && (delimiter === '' || !text.includes(delimiter))) return text;
  return Array.from(text, (char) => (char !== delimiter && PLAIN.test(char) ? char : escape(char))).join('');
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const plain = typeof value === 'bigint' || typeof value === 'boolean' || Number.isFinite(value);
  return plain ? String(value) : undefined;
}

function escape(char: string): string {
  return Array.from(Buffer.from(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'number') return String(value);
  return Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function refused(message: string): LockConfigurationError {
  return new LockConfigurationError(message, 'key');
}
