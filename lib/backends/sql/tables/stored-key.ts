import { createHash } from 'node:crypto';

const MAX_VERBATIM_BYTES = 512;

/** Width of key columns, which indexes of every engine can hold. */
export const STORED_KEY_BYTES = 640;

/**
 * Returns the key verbatim, or the beginning of a long key with its SHA-256. The hashed form is longer than every
 * verbatim key, so that no key can look like the hashed form of another key.
 */
export function toStoredKey(key: string): string {
  // A UTF-16 code unit becomes at most three bytes, so the bytes of short keys need not be counted.
  if (key.length * 3 <= MAX_VERBATIM_BYTES || Buffer.byteLength(key) <= MAX_VERBATIM_BYTES) return key;
  const beginning = Buffer.from(key)
    .subarray(0, MAX_VERBATIM_BYTES)
    .toString()
    .replace(/\ufffd$/u, '');
  return `${beginning}… sha256:${createHash('sha256').update(key).digest('hex')}`;
}

/** Returns `undefined` where only the beginning of the key is stored. */
export function fromStoredKey(storedKey: string): string | undefined {
  return Buffer.byteLength(storedKey) <= MAX_VERBATIM_BYTES ? storedKey : undefined;
}

/** Escapes NUL, which PostgreSQL's text cannot keep, and the backslash that escapes it. */
export function toStoredText(key: string): string {
  return toStoredKey(/[\\\0]/u.test(key) ? key.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') : key);
}

export function fromStoredText(storedText: string): string | undefined {
  return fromStoredKey(storedText)?.replaceAll(/\\[\\0]/gu, (escapeSequence) =>
    escapeSequence === '\\0' ? '\0' : '\\',
  );
}

/** Returns bytes, which MySQL reads alike in every SQL mode and every character set of the connection. */
export function toStoredBytes(key: string): Buffer {
  return Buffer.from(toStoredKey(key));
}
