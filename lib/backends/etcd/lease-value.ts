import { type HolderMetadata, packHolder } from '../../core/index.js';

/** What a place holds, as JSON for whoever looks at the lock from outside: its owner, and what `unpackHolder` finds. */
export function packLease(owner: string, metadata: HolderMetadata): string {
  return `${startOf(owner)},${packHolder(metadata).slice(1)}`;
}

export function isOwn(value: string, owner: string): boolean {
  return value.startsWith(`${startOf(owner)},`);
}

function startOf(owner: string): string {
  return `{"owner":${JSON.stringify(owner)}`;
}
