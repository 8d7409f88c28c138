import { createHash } from 'node:crypto';

/** Names of the two items of a key: its lease, and the counter of its fencing tokens. */
export interface ItemNames {
  readonly lease: string;
  readonly counter: string;
}

/** Maximum number of bytes in the name of an item, set by memcached. */
const MAX_NAME_BYTES = 250;
/** Keys that can stand in a command: ASCII without blanks and control characters. */
const PLAIN_KEY_PATTERN = /^[!-~]+$/u;

/** Returns the item names of a key. No two keys share a name, and no two prefixes do, because a prefix contains no colon. */
export function itemNames(prefix: string, key: string): ItemNames {
  const isPlain = PLAIN_KEY_PATTERN.test(key) && prefix.length + ':l:'.length + key.length <= MAX_NAME_BYTES;
  const suffix = isPlain ? `:${key}` : `#${createHash('sha256').update(key).digest('base64url')}`;
  return { lease: `${prefix}:l${suffix}`, counter: `${prefix}:f${suffix}` };
}

/** Returns the name of the item that holds the list of servers of a prefix. */
export function serverListName(prefix: string): string {
  return `${prefix}:servers`;
}
