import { createHash } from 'node:crypto';

/**
 * A key's name in the server's own table of locks: SHA-256 of its scope and of the key. Any shorter hash, such
 * as PostgreSQL's 32-bit `hashtext`, has collisions after tens of thousands of keys.
 */
function digest(scope: string, key: string): Buffer {
  return createHash('sha256').update(`${scope}\0${key}`).digest();
}

/** For `pg_try_advisory_lock(bigint)`: the first 64 bits, signed. */
export function advisoryLockId(scope: string, key: string): bigint {
  return digest(scope, key).readBigInt64BE();
}

/** For `GET_LOCK`, whose names have at most 64 characters and ignore case. */
export function userLockName(scope: string, key: string): string {
  return `ndl:${digest(scope, key).toString('hex').slice(0, 60)}`;
}
