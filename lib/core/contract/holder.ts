import { hostname } from 'node:os';

/** Description of a holder by the holder itself: advice for people, and no proof. */
export interface HolderMetadata {
  readonly host: string;
  readonly pid: number;
  readonly label?: string;
}

/** Present holder of a key, as far as a backend could find out. */
export interface Holder extends HolderMetadata {
  /** Time at which the holder got the key, or began to wait, by the backend's clock, or else by the holder's. */
  readonly since?: Date;
}

/** Returns the description of this process. */
export function ownMetadata(label: string | undefined): HolderMetadata {
  return { host: hostname(), pid: process.pid, ...(label === undefined ? {} : { label }) };
}

const packedTexts = new WeakMap<HolderMetadata, string>();

/** Returns the text that a store writes beside the owner. It is made once for each metadata object. */
export function packMetadata(metadata: HolderMetadata): string {
  const known = packedTexts.get(metadata);
  if (known !== undefined) return known;
  const { host, pid, label } = metadata;
  const text = JSON.stringify({ host, pid, label });
  packedTexts.set(metadata, text);
  return text;
}

/** Returns the same text with the present time, by the holder's clock, for a server that keeps no time. */
export function packHolder(metadata: HolderMetadata): string {
  return `${packMetadata(metadata).slice(0, -1)},"since":"${new Date().toISOString()}"}`;
}

/** Reads such a text. `undefined`: this library did not write it. @param since time by the server, if it keeps one */
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
