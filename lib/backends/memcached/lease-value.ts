import { type Holder, type HolderMetadata, type KeyHolder, packHolder, unpackHolder } from '../../core/index.js';

/** Returns the value of a lease's item. By the exptime in it, a process recognises the value that it has written. */
export function packLease(owner: string, exptime: number, metadata: HolderMetadata): string {
  return `${owner}|${exptime}|${packHolder(metadata)}`;
}

export function replaceExptime(value: string, owner: string, exptime: number): string {
  return `${owner}|${exptime}${value.slice(value.indexOf('|', owner.length + 1))}`;
}

export function isLeaseOf(value: string, owner: string): boolean {
  return value.startsWith(`${owner}|`);
}

/**
 * Returns the holder, and the milliseconds until the date in the value. The server may keep the item some seconds more.
 * @param nowUs the server's time in microseconds
 */
export function readHolderAndLeftMs(value: string, nowUs: bigint): KeyHolder {
  const [owner = '', exptime = ''] = value.split('|', 2);
  const leftMs = Math.max(Number(exptime) * 1_000 - Number(nowUs) / 1_000, 0);
  return { owner, ...(/^\d+$/u.test(exptime) ? { leftMs } : {}), ...readHolder(value) };
}

export function readHolder(value: string): Holder | undefined {
  const [, , ...metadata] = value.split('|');
  return unpackHolder(metadata.join('|'));
}
