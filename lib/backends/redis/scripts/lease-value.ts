import { randomUUID } from 'node:crypto';

/** The keys of one lock. They share a hash tag, so that a script may touch all of them wherever keys are spread over slots. */
export class LockKeys {
  constructor(private readonly prefix: string) {}

  lease(key: string): string {
    return `${this.prefix}:{${escape(key)}}`;
  }
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
