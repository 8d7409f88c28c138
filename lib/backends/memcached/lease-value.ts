import { type Holder, type HolderMetadata, type KeyHolder, packHolder, unpackHolder } from '../../core/index.js';

/** A lease as the server keeps it. Its writer knows it again by the date of its end. */
export function packLease(owner: string, expiresAt: number, metadata: HolderMetadata): string {
  return `${owner}|${expiresAt}|${packHolder(metadata)}`;
}

export function extended(value: string, owner: string, expiresAt: number): string {
  return `${owner}|${expiresAt}${value.slice(value.indexOf('|', owner.length + 1))}`;
}

export function isOwn(value: string, owner: string): boolean {
  return value.startsWith(`${owner}|`);
}

/** @param nowUs the server's clock. The server may keep the lease for some seconds longer than the holder asked. */
export function keyHolderIn(value: string, nowUs: bigint): KeyHolder {
  const [owner = '', expiresAt = ''] = value.split('|', 2);
  const leftMs = Math.max(Number(expiresAt) * 1_000 - Number(nowUs) / 1_000, 0);
  return { owner, ...(/^\d+$/u.test(expiresAt) ? { leftMs } : {}), ...holderIn(value) };
}

/** The holder; `undefined` for a value that no lock service wrote. */
export function holderIn(value: string): Holder | undefined {
  const [, , ...metadata] = value.split('|');
  return unpackHolder(metadata.join('|'));
}
