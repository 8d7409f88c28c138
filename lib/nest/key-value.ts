import { LockConfigurationError, quote } from '../core/index.js';

/** Longer than any key may be, so it is refused before it is worked on. */
const LONGEST_VALUE = 4096;
/** What a value keeps. Everything else, above all the separators `_ : / | #`, is percent-encoded. */
const PLAIN = /^[\p{L}\p{M}\p{N}.@-]*$/u;

/**
 * A value as it stands in a key. Two values that differ never look alike, and none looks like its value followed by
 * `delimiter`, the character that comes after it: so no choice of arguments can spell the key of another choice.
 * `1`, `1n` and `'1'` are one value: routes give strings where code has numbers.
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
