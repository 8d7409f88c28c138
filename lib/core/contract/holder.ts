import { hostname } from 'node:os';

/** Who holds a key, as the holder itself put it: advice for people, no proof of anything. */
export interface HolderMetadata {
  readonly host: string;
  readonly pid: number;
  readonly label?: string;
}

/** The present holder of a key, as far as a backend could find out. */
export interface Holder extends HolderMetadata {
  /** When the holder got the key, or began to wait: by the backend's clock, or else by the holder's. */
  readonly since?: Date;
}

/** The metadata of this process. */
export function ownMetadata(label: string | undefined): HolderMetadata {
  return { host: hostname(), pid: process.pid, ...(label === undefined ? {} : { label }) };
}

const packed = new WeakMap<HolderMetadata, string>();

/** The text that a store writes beside the owner. A process has one metadata object, so it is worked out once. */
export function packMetadata(metadata: HolderMetadata): string {
  const known = packed.get(metadata);
  if (known !== undefined) return known;
  const { host, pid, label } = metadata;
  const text = JSON.stringify({ host, pid, label });
  packed.set(metadata, text);
  return text;
}

/** The same where the server keeps no time: since when, by the holder's own clock, for people only. */
export function packHolder(metadata: HolderMetadata): string {
  return `${packMetadata(metadata).slice(0, -1)},"since":"${new Date().toISOString()}"}`;
}

/** Who wrote it, or `undefined` for what none of us wrote. `since` where the server knows better. */
export function unpackHolder(text: string, since?: Date): Holder | undefined {
  try {
    const fields: Partial<Record<string, unknown>> = JSON.parse(text);
    const { host, pid, label } = fields;
    if (typeof host !== 'string' || typeof pid !== 'number') return undefined;
    const from = since ?? dateOf(fields['since']);
    return { host, pid, ...(typeof label === 'string' ? { label } : {}), ...(from ? { since: from } : {}) };
  } catch {
    return undefined;
  }
}

function dateOf(since: unknown): Date | undefined {
  const date = new Date(typeof since === 'string' ? since : Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
