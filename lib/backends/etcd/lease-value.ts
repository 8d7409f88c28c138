import { type HolderMetadata, packHolder } from '../../core/index.js';

/** The value of an entry, as JSON for operators: its owner, and the fields for `unpackHolder`. */
export function packLease(owner: string, metadata: HolderMetadata): string {
  return `${startOf(owner)},${packHolder(metadata).slice(1)}`;
}

export function isOwn(value: string, owner: string): boolean {
  return value.startsWith(`${startOf(owner)},`);
}

function startOf(owner: string): string {
  return `{"owner":${JSON.stringify(owner)}`;
}
