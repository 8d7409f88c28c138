import { createHash } from 'node:crypto';

/** The items of a key's lease and of the counter of its fencing tokens. */
export interface ItemNames {
  readonly lease: string;
  readonly fence: string;
}

/** In bytes, as memcached allows. */
const LONGEST_NAME = 250;
/** ASCII without blanks and control characters: nothing else may stand in a command. */
const PLAIN = /^[!-~]+$/u;

/** The items of the lock `key`. Two keys never share a name, nor do two prefixes, which have no colon. */
export function itemNames(prefix: string, key: string): ItemNames {
  const plain = PLAIN.test(key) && prefix.length + ':l:'.length + key.length <= LONGEST_NAME;
  const rest = plain ? `:${key}` : `#${createHash('sha256').update(key).digest('base64url')}`;
  return { lease: `${prefix}:l${rest}`, fence: `${prefix}:f${rest}` };
}

/** Where the list of servers is that the locks of `prefix` are spread over. */
export function serversName(prefix: string): string {
  return `${prefix}:servers`;
}
