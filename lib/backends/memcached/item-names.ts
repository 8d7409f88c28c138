import { createHash } from 'node:crypto';

export interface ItemNames {
  readonly lease: string;
  readonly counter: string;
}

/** Limit of memcached. */
const MAX_NAME_BYTES = 250;
/** Keys that can stand in a command: ASCII without blanks and control characters. */
const PLAIN_KEY_PATTERN = /^[!-~]+$/u;

/** Returns names that are used for no other key and with no other prefix, because a prefix contains no colon. */
export function itemNames(prefix: string, key: string): ItemNames {
  const isPlain = PLAIN_KEY_PATTERN.test(key) && prefix.length + ':l:'.length + key.length <= MAX_NAME_BYTES;
  const suffix = isPlain ? `:${key}` : `#${createHash('sha256').update(key).digest('base64url')}`;
  return { lease: `${prefix}:l${suffix}`, counter: `${prefix}:f${suffix}` };
}

export function serverListName(prefix: string): string {
  return `${prefix}:servers`;
}

export function serverIdName(prefix: string): string {
  return `${prefix}:id`;
}
