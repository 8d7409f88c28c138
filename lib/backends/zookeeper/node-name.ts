import type { Holder, HolderMetadata } from '../../core/index.js';

/**
 * A key as the name of a node: what `encodeURIComponent` makes of it, so letters, digits and `-_.!~*'()` stay, and all else is
 * the `%XX` of its UTF-8 bytes. The names `.` and `..`, which paths may not have, become `%2E` and `%2E%2E`. No two keys share
 * a name, and `decodeURIComponent` gives the key back.
 */
export function nameOfKey(key: string): string {
  return /^\.{1,2}$/u.test(key) ? key.replaceAll('.', '%2E') : encodeURIComponent(key);
}

/**
 * The name of a contender's node, before the server appends its number: who waits, for `ls`, and the owner, by which a node is
 * found whose creation was never answered.
 */
export function contenderPrefix({ pid, label, host }: HolderMetadata, owner: string): string {
  return `${pid}@${nameOfKey((label ?? host).slice(0, 60).toWellFormed())}:${nameOfKey(owner)}:`;
}

/** What an operator reads with `get`, and what waiters tell of the holder. */
export function dataOf({ host, pid, label }: HolderMetadata, owner?: string): Buffer {
  return Buffer.from(JSON.stringify({ host, pid, label, owner }));
}

/** `null`: nobody of us has made this node, or an operator has written something else into it. */
export function holderOf(data: Buffer | undefined, ctime: Buffer): Holder | null {
  const { host, pid, label } = fieldsOf(data);
  if (typeof host !== 'string' || typeof pid !== 'number') return null;
  const named = typeof label === 'string' ? { label } : {};
  return { host, pid, ...named, since: new Date(Number(ctime.readBigInt64BE())) };
}

/** The owner that `dataOf` was given, if any. */
export function ownerOf(data: Buffer | undefined): unknown {
  return fieldsOf(data)['owner'];
}

function fieldsOf(data: Buffer | undefined): Record<string, unknown> {
  try {
    const fields: unknown = JSON.parse(data?.toString() ?? '');
    return typeof fields === 'object' && fields !== null ? { ...fields } : {};
  } catch {
    return {};
  }
}
