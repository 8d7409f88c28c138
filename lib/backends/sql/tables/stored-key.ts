import { createHash } from 'node:crypto';

const MAX_VERBATIM_BYTES = 512;

/** Width of key columns in bytes. Indexes of every engine can hold it. */
export const STORED_KEY_BYTES = 640;

/**
 * Returns a key in the form that fits into its column: verbatim, or its beginning, for people, with its SHA-256. The hashed
 * form is longer than every verbatim key, so that no key can look like another one's hashed form.
 */
export function toStoredKey(key: string): string {
  if (key.length * 3 <= MAX_VERBATIM_BYTES || Buffer.byteLength(key) <= MAX_VERBATIM_BYTES) return key;
  const beginning = Buffer.from(key)
    .subarray(0, MAX_VERBATIM_BYTES)
    .toString()
    .replace(/\ufffd$/u, '');
  return `${beginning}… sha256:${createHash('sha256').update(key).digest('hex')}`;
}

/** The key that `storedKey` made this of; `undefined` where it kept only the beginning. */
export function fromStoredKey(stored: string): string | undefined {
  return Buffer.byteLength(stored) <= MAX_VERBATIM_BYTES ? stored : undefined;
}

/** For PostgreSQL, whose text holds everything but NUL: that is written `\0` here, and the backslash therefore `\\`. */
export function toStoredText(key: string): string {
  return toStoredKey(/[\\\0]/u.test(key) ? key.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') : key);
}

/** The key that `storedText` made this of. */
export function fromStoredText(stored: string): string | undefined {
  return fromStoredKey(stored)?.replaceAll(/\\[\\0]/gu, (escaped) => (escaped === '\\0' ? '\0' : '\\'));
}

/** For MySQL, as bytes: safe in every SQL mode, the same in every character set of the connection. */
export function toStoredBytes(key: string): Buffer {
  return Buffer.from(toStoredKey(key));
}
