import { randomUUID } from 'node:crypto';

/** Returns the Redis key of the lease. The lock's other Redis keys have the same hash tag, and thus the same slot. */
export function leaseKeyOf(prefix: string, key: string): string {
  return `${prefix}:{${escapeKey(key)}}`;
}

/**
 * Returns the key of the lock that has the lease.
 * @param prefix `keyPrefix` of the client, if any, followed by the `prefix` of the backend
 */
export function keyOfLease(prefix: string, leaseKey: string): string {
  return unescapeKey(leaseKey.slice(prefix.length + 2, -1));
}

/** Returns all keys of a lock with a queue: lease, queue, fence, waiters and shares. */
export function queueKeysOf(leaseKey: string): readonly string[] {
  return [leaseKey, `${leaseKey}:q`, `${leaseKey}:f`, `${leaseKey}:w`, `${leaseKey}:s`];
}

export function shareKeysOf(leaseKey: string): readonly [string, string] {
  return [leaseKey, `${leaseKey}:s`];
}

/**
 * Escapes braces. A lock's key that begins with `}` would make the hash tag empty, and the lock's Redis keys would then
 * be in different slots. Escapes `%` as well, so that different keys stay different.
 */
function escapeKey(key: string): string {
  return /[%{}]/u.test(key) ? key.replace(/[%{}]/gu, encodeURIComponent) : key;
}

export function unescapeKey(escapedKey: string): string {
  return escapedKey.replace(/%(?:25|7B|7D)/gu, decodeURIComponent);
}

export function isLeaseOf(lease: unknown, owner: string): boolean {
  return typeof lease === 'string' && lease.startsWith(`${owner}|`);
}

export function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Splits `text` at `|` into `count` fields. The last field may contain further bars. Returns `[]` for fewer fields. */
export function splitFields(text: string, count: number): string[] {
  const parts = text.split('|');
  return parts.length < count ? [] : [...parts.slice(0, count - 1), parts.slice(count - 1).join('|')];
}

export function createUnusedName(): string {
  return `nobody-${randomUUID()}`;
}

/** @throws when the reply is no list: an unknown server may answer with anything */
export function asList(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new Error('the server gave an answer of an unexpected kind');
  return reply;
}

/** Converts the reply of TIME. The result is below 2^52, the largest fencing token, until the year 2112. */
export function toMicroseconds(time: unknown): bigint {
  const [seconds, micros] = asList(time);
  return BigInt(String(seconds)) * 1_000_000n + BigInt(String(micros));
}

export function isFirstReplyOne([reply]: readonly unknown[]): boolean {
  return Number(reply) === 1;
}
