import { createHash } from 'node:crypto';

const LONGEST_VERBATIM_BYTES = 512;

/** What a column for keys must hold, and an index of every engine can. */
export const STORED_KEY_BYTES = 640;

/**
 * A key as it stands in a column narrower than the longest key: verbatim, or its beginning, for people, and its SHA-256.
 * The latter is longer than every verbatim key, so that none can be made to look like it.
 */
export function storedKey(key: string): string {
  if (key.length * 3 <= LONGEST_VERBATIM_BYTES || Buffer.byteLength(key) <= LONGEST_VERBATIM_BYTES) return key;
  const beginning = Buffer.from(key)
    .subarray(0, LONGEST_VERBATIM_BYTES)
    .toString()
    .replace(/\ufffd$/u, '');
  return `${beginning}… sha256:${createHash('sha256').update(key).digest('hex')}`;
}
