import { createHash } from 'node:crypto';

/** A shorter hash, such as PostgreSQL's 32-bit `hashtext`, has collisions after tens of thousands of keys. */
function hashKey(scope: string, key: string): Buffer {
  return createHash('sha256').update(`${scope}\0${key}`).digest();
}

export function getAdvisoryLockId(scope: string, key: string): bigint {
  return hashKey(scope, key).readBigInt64BE();
}

/** Returns a name for `GET_LOCK`, which takes at most 64 characters and ignores case. */
export function getUserLockName(scope: string, key: string): string {
  return `ndl:${hashKey(scope, key).toString('hex').slice(0, 60)}`;
}
