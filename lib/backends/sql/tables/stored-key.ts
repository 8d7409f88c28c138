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

/** Returns the key of a stored key; `undefined` where only its beginning is stored. */
export function fromStoredKey(stored: string): string | undefined {
  return Buffer.byteLength(stored) <= MAX_VERBATIM_BYTES ? stored : undefined;
}

/** Returns a key as text of PostgreSQL, which keeps everything but NUL: NUL is written `\0`, and a backslash `\\`. */
export function toStoredText(key: string): string {
  return toStoredKey(/[\\\0]/u.test(key) ? key.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') : key);
}

/** Returns the key of a stored text; `undefined` where only its beginning is stored. */
export function fromStoredText(stored: string): string | undefined {
  return fromStoredKey(stored)?.replaceAll(/\\[\\0]/gu, (escaped) => (escaped === '\\0' ? '\0' : '\\'));
}

/** Returns a key as bytes for MySQL: safe in every SQL mode, and the same in every character set of the connection. */
export function toStoredBytes(key: string): Buffer {
  return Buffer.from(toStoredKey(key));
}
