import { createHash } from 'node:crypto';

/** Hashes by SHA-256. PostgreSQL's `hashtext` has 32 bits only, and collisions after tens of thousands of keys. */
function hashKey(namespace: string, key: string): Buffer {
  return createHash('sha256').update(`${namespace}\0${key}`).digest();
}

export function getAdvisoryLockId(namespace: string, key: string): bigint {
  return hashKey(namespace, key).readBigInt64BE();
}

/** Returns a name for `GET_LOCK`, which takes at most 64 characters and ignores case. */
export function getUserLockName(namespace: string, key: string): string {
  return `ndl:${hashKey(namespace, key).toString('hex').slice(0, 60)}`;
}
