import type { Holder, HolderMetadata } from './lock-backend.js';

const packed = new WeakMap<HolderMetadata, string>();

/** What a store writes beside the owner. A process has one metadata object for all its locks, so this is worked out once. */
export function packMetadata(metadata: HolderMetadata): string {
  const known = packed.get(metadata);
  if (known !== undefined) return known;
  const { host, pid, label } = metadata;
  const text = JSON.stringify({ host, pid, label });
  packed.set(metadata, text);
  return text;
}

/** Who wrote it, or `undefined` for what none of us wrote. */
export function unpackHolder(metadata: string, since?: Date): Holder | undefined {
  try {
    const { host, pid, label }: Partial<Record<string, unknown>> = JSON.parse(metadata);
    if (typeof host !== 'string' || typeof pid !== 'number') return undefined;
    return { host, pid, ...(typeof label === 'string' ? { label } : {}), ...(since ? { since } : {}) };
  } catch {
    return undefined;
  }
}
