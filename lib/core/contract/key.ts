import { LockConfigurationError, quote } from './errors.js';

/** Maximum length of a key: a longer one is a mistake or an attack. Backends hash keys too long for their server. */
const MAX_KEY_BYTES = 4096;

/**
 * Accepts every well-formed text, such as blanks, line breaks, `*` and slashes. Keys are compared byte by byte, so that
 * NFC and NFD differ.
 * @throws LockConfigurationError for an empty, long or malformed key, and for another type
 */
export function assertKey(key: unknown): asserts key is string {
  if (typeof key !== 'string') throw createKeyError(`a lock key must be a string, not ${describeType(key)}`);
  if (key === '') throw createKeyError('a lock key must not be empty: every caller would share one lock');
  if (key.length > MAX_KEY_BYTES || (key.length * 3 > MAX_KEY_BYTES && Buffer.byteLength(key) > MAX_KEY_BYTES)) {
    throw createKeyError(
      `a lock key may have ${MAX_KEY_BYTES} bytes of UTF-8, this one has ${Buffer.byteLength(key)}: ${quote(key)}`,
    );
  }
  if (!key.isWellFormed()) {
    throw createKeyError(
      `a lock key must be well-formed Unicode; ${quote(key)} has a lone surrogate, which UTF-8 cannot keep`,
    );
  }
}

const UUID_OR_NUMBER_PATTERN = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|\d+/giu;

/** Returns the class of a key: the key with `*` for each UUID and number. */
export function replaceNumbers(key: string): string {
  return key.replaceAll(UUID_OR_NUMBER_PATTERN, '*');
}

function createKeyError(message: string): LockConfigurationError {
  return new LockConfigurationError(message, 'key');
}

function describeType(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : typeof value;
}
