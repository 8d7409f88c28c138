import { randomUUID } from 'node:crypto';

/** The key of a lock's lease. Its other keys share the hash tag, and so the slot of a cluster. */
export function leaseKeyOf(prefix: string, key: string): string {
  return `${prefix}:{${escape(key)}}`;
}

/** All keys of a lock with a queue: the lease, the queue, the fence, the waiters and the shares. */
export function queueKeysOf(leaseKey: string): readonly string[] {
  return [leaseKey, `${leaseKey}:q`, `${leaseKey}:f`, `${leaseKey}:w`, `${leaseKey}:s`];
}

/** Those of them that keep a share. */
export function shareKeysOf(leaseKey: string): readonly [string, string] {
  return [leaseKey, `${leaseKey}:s`];
}

/** A `}` would end the hash tag early: `a}b` and `a}c` in one slot, and `a}:q` in the place of the queue of `a`. */
function escape(key: string): string {
  return /[%{}]/u.test(key) ? key.replace(/[%{}]/gu, encodeURIComponent) : key;
}

/** The key that `escape` made this of. */
export function keyIn(escaped: string): string {
  return escaped.replace(/%(?:25|7B|7D)/gu, decodeURIComponent);
}

/** Whether a lease that begins with its owner is this one's. */
export function isOwn(lease: unknown, owner: string): boolean {
  return typeof lease === 'string' && lease.startsWith(`${owner}|`);
}

/** Empty for what is none. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Cuts `text` at its first `fields - 1` bars; the last field keeps its own. Empty when there are fewer. */
export function splitFields(text: string, fields: number): string[] {
  const parts = text.split('|');
  return parts.length < fields ? [] : [...parts.slice(0, fields - 1), parts.slice(fields - 1).join('|')];
}

/** Neither a key that anybody locks, nor an owner of one. */
export function nobody(): string {
  return `nobody-${randomUUID()}`;
}

/** @throws when it is none: the words of an unknown server are no answer */
export function asList(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) throw new Error('the server gave an answer of an unexpected kind');
  return reply;
}

/** The server's `TIME` in microseconds: below 2^52, where tokens end, until the year 2112. */
export function microseconds(time: unknown): bigint {
  const [seconds, micros] = asList(time);
  return BigInt(String(seconds)) * 1_000_000n + BigInt(String(micros));
}

/** Whether the first of the replies is 1, as scripts say yes. */
export function isOne([reply]: readonly unknown[]): boolean {
  return Number(reply) === 1;
}
