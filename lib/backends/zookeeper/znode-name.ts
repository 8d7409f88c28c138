import {
  type Claim,
  parseClaim,
  type Holder,
  type HolderMetadata,
  packMetadata,
  unpackHolder,
} from '../../core/index.js';
import type { ZnodeState } from './znodes.js';

/** Escapes a key, owner or label for a znode's name. Also escapes `.` and `..`, which ZooKeeper forbids as names. */
export function encodeNamePart(text: string): string {
  return /^\.{1,2}$/u.test(text) ? text.replaceAll('.', '%2E') : encodeURIComponent(text);
}

/** Returns `undefined` for a text that cannot be decoded, such as the name of another program's znode. */
export function decodeNamePart(namePart: string): string | undefined {
  try {
    return decodeURIComponent(namePart);
  } catch {
    return undefined;
  }
}

/**
 * Returns the start of a znode's name, by which the owner finds the znode after a lost answer. The server appends a
 * sequence number.
 */
export function createNamePrefix({ pid, label, host }: HolderMetadata, owner: string): string {
  return `${pid}@${encodeNamePart((label ?? host).slice(0, 60).toWellFormed())}:${encodeNamePart(owner)}:`;
}

export function parseOwnerOfName(name: string): string | undefined {
  const [, owner] = name.split(':');
  return owner === undefined ? undefined : decodeNamePart(owner);
}

export function parseClaimOfName(name: string): Claim {
  return parseClaim(parseOwnerOfName(name) ?? '');
}

/** Returns a znode's data. Only a znode of mode `simple` needs the owner in it: its name contains no owner. */
export function encodeData(metadata: HolderMetadata, owner?: string): Buffer {
  if (owner === undefined) return Buffer.from(packMetadata(metadata));
  const { host, pid, label } = metadata;
  return Buffer.from(JSON.stringify({ host, pid, label, owner }));
}

export function readHolder({ data, ctime }: ZnodeState): Holder | undefined {
  return unpackHolder(data?.toString() ?? '', new Date(Number(ctime.readBigInt64BE())));
}

export function parseOwnerOfData({ data }: ZnodeState): unknown {
  try {
    const fields: { owner?: unknown } = JSON.parse(data?.toString() ?? '');
    return fields.owner;
  } catch {
    return undefined;
  }
}
