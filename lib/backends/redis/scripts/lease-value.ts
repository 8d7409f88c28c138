import { randomUUID } from 'node:crypto';

/** The key of a lock's lease. Its other keys share the hash tag, and so the slot of a cluster. */
export function leaseKeyOf(prefix: string, key: string): string {
  return `${prefix}:{${escape(key)}}`;
}

/** A `}` would end the hash tag early: `a}b` and `a}c` in one slot, and the lock `a}:q` in the place of the queue of `a`. */
function escape(key: string): string {
  return /[%{}]/u.test(key) ? key.replace(/[%{}]/gu, encodeURIComponent) : key;
}

/** Whether a lease that begins with its owner is this one's. */
export function isOwn(lease: unknown, owner: string): boolean {
  return typeof lease === 'string' && lease.startsWith(`${owner}|`);
}

/** Cuts `text` at its first `fields - 1` bars; the last field keeps its own. `undefined` when there are fewer. */
export function splitFields(text: string, fields: number): string[] | undefined {
  const parts = text.split('|');
  if (parts.length < fields) return undefined;
  return [...parts.slice(0, fields - 1), parts.slice(fields - 1).join('|')];
}

/** Neither a key that anybody locks, nor an owner of one. */
export function nobody(): string {
  return `nobody-${randomUUID()}`;
}
