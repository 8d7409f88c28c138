import { type Claim, claimOf, type Holder, type HolderMetadata, packMetadata, unpackHolder } from '../../core/index.js';
import type { NodeState } from './nodes.js';

/**
 * A key as the name of a node, which may not be `.` or `..`. No two keys share a name. `decodeURIComponent` reads it.
 */
export function nameOfKey(key: string): string {
  return /^\.{1,2}$/u.test(key) ? key.replaceAll('.', '%2E') : encodeURIComponent(key);
}

/** The key that `nameOfKey` made this name of; `undefined` for the name of another program's node. */
export function keyInName(name: string): string | undefined {
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}

/** The name before the server appends its number. `ls` shows who waits. The owner finds a node after a lost answer. */
export function contenderPrefix({ pid, label, host }: HolderMetadata, owner: string): string {
  return `${pid}@${nameOfKey((label ?? host).slice(0, 60).toWellFormed())}:${nameOfKey(owner)}:`;
}

/** The owner in the name of a contender's node; `undefined` in another name. */
export function ownerInName(name: string): string | undefined {
  const [, owner] = name.split(':');
  return owner === undefined ? undefined : keyInName(owner);
}

export function claimInName(name: string): Claim {
  return claimOf(ownerInName(name) ?? '');
}

/** The data of a node, for an operator's `get` and for waiters who name the holder. */
export function dataOf(metadata: HolderMetadata, owner?: string): Buffer {
  if (owner === undefined) return Buffer.from(packMetadata(metadata));
  const { host, pid, label } = metadata;
  return Buffer.from(JSON.stringify({ host, pid, label, owner }));
}

/** `undefined`: no lock service made this node, or an operator has written something else into it. */
export function holderOf({ data, ctime }: NodeState): Holder | undefined {
  return unpackHolder(data?.toString() ?? '', new Date(Number(ctime.readBigInt64BE())));
}

/** The owner that `dataOf` was given, if any. */
export function ownerOf({ data }: NodeState): unknown {
  try {
    const fields: { owner?: unknown } = JSON.parse(data?.toString() ?? '');
    return fields.owner;
  } catch {
    return undefined;
  }
}
