import { LockConfigurationError, quote } from './errors.js';

/** Maximum length of a key. Every backend takes one as it is or hashes it; a longer key is a mistake or an attack. */
const MAX_KEY_BYTES = 4096;

/**
 * Refuses keys that two backends could compare differently. Every other text is a key: blanks, line breaks, `*`, slashes
 * and all of Unicode, compared byte by byte (NFC and NFD differ).
 * @throws LockConfigurationError
 */
export function assertKey(key: unknown): asserts key is string {
  if (typeof key !== 'string') throw refused(`a lock key must be a string, not ${describe(key)}`);
  if (key === '') throw refused('a lock key must not be empty: every caller would share one lock');
  if (key.length > MAX_KEY_BYTES || (key.length * 3 > MAX_KEY_BYTES && Buffer.byteLength(key) > MAX_KEY_BYTES)) {
    throw refused(
      `a lock key may have ${MAX_KEY_BYTES} bytes of UTF-8, this one has ${Buffer.byteLength(key)}: ${quote(key)}`,
    );
  }
  if (!key.isWellFormed()) {
    throw refused(
      `a lock key must be well-formed Unicode; ${quote(key)} has a lone surrogate, which UTF-8 cannot keep`,
    );
  }
}

/** Identifiers and numbers in keys without a template. */
const NUMBERS_PATTERN = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|\d+/giu;

/** Returns a name that many keys share: the key with `*` for each number. */
export function keyClass(key: string): string {
  return key.replaceAll(NUMBERS_PATTERN, '*');
}

function refused(message: string): LockConfigurationError {
  return new LockConfigurationError(message, 'key');
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : typeof value;
}
