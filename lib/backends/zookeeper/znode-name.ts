import {
  type Claim,
  claimOfOwner,
  type Holder,
  type HolderMetadata,
  packMetadata,
  unpackHolder,
} from '../../core/index.js';
import type { ZnodeState } from './znodes.js';

/**
 * Returns the znode name of a key. It is never `.` or `..`. No two keys share a name. `decodeURIComponent` decodes it.
 */
export function encodeKey(key: string): string {
  return /^\.{1,2}$/u.test(key) ? key.replaceAll('.', '%2E') : encodeURIComponent(key);
}

/** Returns the key that `encodeKey` encoded; `undefined` for the name of another program's znode. */
export function decodeKey(name: string): string | undefined {
  try {
    return decodeURIComponent(name);
  } catch {
    return undefined;
  }
}

/**
 * Returns the name of a contender's znode, to which the server appends the sequence number. `ls` shows who waits. By
 * this name the owner finds its znode after a lost answer.
 */
export function contenderPrefix({ pid, label, host }: HolderMetadata, owner: string): string {
  return `${pid}@${encodeKey((label ?? host).slice(0, 60).toWellFormed())}:${encodeKey(owner)}:`;
}

/** Returns the owner in the name of a contender's znode; `undefined` for another name. */
export function parseOwnerOfName(name: string): string | undefined {
  const [, owner] = name.split(':');
  return owner === undefined ? undefined : decodeKey(owner);
}

export function parseClaimOfName(name: string): Claim {
  return claimOfOwner(parseOwnerOfName(name) ?? '');
}

/** Returns the data of a znode, for an operator's `get` and for waiters, whose errors name the holder. */
export function encodeData(metadata: HolderMetadata, owner?: string): Buffer {
  if (owner === undefined) return Buffer.from(packMetadata(metadata));
  const { host, pid, label } = metadata;
  return Buffer.from(JSON.stringify({ host, pid, label, owner }));
}

/** Returns the holder; `undefined` where no lock service wrote the data. */
export function readHolder({ data, ctime }: ZnodeState): Holder | undefined {
  return unpackHolder(data?.toString() ?? '', new Date(Number(ctime.readBigInt64BE())));
}

/** Returns the owner that `encodeData` encoded, if any. */
export function parseOwnerOfData({ data }: ZnodeState): unknown {
  try {
    const fields: { owner?: unknown } = JSON.parse(data?.toString() ?? '');
    return fields.owner;
  } catch {
    return undefined;
  }
}
