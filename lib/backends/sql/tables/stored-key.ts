import { createHash } from 'node:crypto';

const LONGEST_VERBATIM_BYTES = 512;

/** The width of key columns. Indexes of every engine can hold it. */
export const STORED_KEY_BYTES = 640;

/**
 * A key as it stands in a column narrower than the longest key: verbatim, or its beginning, for people, and its
 * SHA-256. The latter is longer than every verbatim key, so that none can be made to look like it.
 */
export function storedKey(key: string): string {
  if (key.length * 3 <= LONGEST_VERBATIM_BYTES || Buffer.byteLength(key) <= LONGEST_VERBATIM_BYTES) return key;
  const beginning = Buffer.from(key)
    .subarray(0, LONGEST_VERBATIM_BYTES)
    .toString()
    .replace(/\ufffd$/u, '');
  return `${beginning}… sha256:${createHash('sha256').update(key).digest('hex')}`;
}

/** The key that `storedKey` made this of; `undefined` where it kept only the beginning. */
export function keyInStored(stored: string): string | undefined {
  return Buffer.byteLength(stored) <= LONGEST_VERBATIM_BYTES ? stored : undefined;
}

/** For PostgreSQL, whose text holds everything but NUL: that is written `\0` here, and the backslash therefore `\\`. */
export function storedText(key: string): string {
  return storedKey(/[\\\0]/u.test(key) ? key.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') : key);
}

/** The key that `storedText` made this of. */
export function keyInText(stored: string): string | undefined {
  return keyInStored(stored)?.replaceAll(/\\[\\0]/gu, (escaped) => (escaped === '\\0' ? '\0' : '\\'));
}

/** For MySQL, as bytes: safe in every SQL mode, the same in every character set of the connection. */
export function storedBytes(key: string): Buffer {
  return Buffer.from(storedKey(key));
}
