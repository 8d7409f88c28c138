import { randomUUID } from 'node:crypto';

/** The other keys of the lock share the hash tag of its lease, and thus its slot in a cluster. */
export function leaseKeyOf(prefix: string, key: string): string {
  return `${prefix}:{${escapeKey(key)}}`;
}

/** @param prefix the client's `keyPrefix`, if any, and that of the backend */
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

/** Escapes braces, because a `}` would end the hash tag early: the key `a}:q` would collide with the queue of `a`. */
function escapeKey(key: string): string {
  return /[%{}]/u.test(key) ? key.replace(/[%{}]/gu, encodeURIComponent) : key;
}

export function unescapeKey(escaped: string): string {
  return escaped.replace(/%(?:25|7B|7D)/gu, decodeURIComponent);
}

export function isLeaseOf(lease: unknown, owner: string): boolean {
  return typeof lease === 'string' && lease.startsWith(`${owner}|`);
}

export function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Splits `text` at its first bars into `count` fields, of which the last keeps its bars. Returns `[]` for fewer. */
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

/** The result is below 2^52, where fencing tokens end, until the year 2112. */
export function toMicroseconds(time: unknown): bigint {
  const [seconds, micros] = asList(time);
  return BigInt(String(seconds)) * 1_000_000n + BigInt(String(micros));
}

export function isFirstReplyOne([reply]: readonly unknown[]): boolean {
  return Number(reply) === 1;
}
