import { type Holder, type HolderMetadata, packHolder, unpackHolder } from '../../core/index.js';

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

/** The holder; `undefined` for a value that no lock service wrote. */
export function holderIn(value: string): Holder | undefined {
  const [, , ...metadata] = value.split('|');
  return unpackHolder(metadata.join('|'));
}
