import { hostname } from 'node:os';

/** Description that a holder gives of itself, for people. A description proves nothing. */
export interface HolderMetadata {
  readonly host: string;
  readonly pid: number;
  readonly label?: string;
}

/** Present holder of a key, as far as the backend knows. */
export interface Holder extends HolderMetadata {
  /**
   * Time at which the holder got the key or began to wait, by the server's clock. If the server stores no time, the
   * holder's process does, by its own clock.
   */
  readonly since?: Date;
}

/** Returns the description of this process. */
export function ownMetadata(label: string | undefined): HolderMetadata {
  return { host: hostname(), pid: process.pid, ...(label === undefined ? {} : { label }) };
}

const packedTexts = new WeakMap<HolderMetadata, string>();

/** Returns the description as the text that a store writes beside the owner. */
export function packMetadata(metadata: HolderMetadata): string {
  const packedText = packedTexts.get(metadata);
  if (packedText !== undefined) return packedText;
  const { host, pid, label } = metadata;
  const text = JSON.stringify({ host, pid, label });
  packedTexts.set(metadata, text);
  return text;
}

/**
 * Returns the text of `packMetadata` with the present time by this process' clock, for a server that stores no time.
 */
export function packHolder(metadata: HolderMetadata): string {
  return `${packMetadata(metadata).slice(0, -1)},"since":"${getPresentTimeText()}"}`;
}

let cachedTime = NaN;
let cachedTimeText = '';

/** Returns the present time as text, and caches the text, because many locks need it in the same millisecond. */
function getPresentTimeText(): string {
  const time = Date.now();
  if (time !== cachedTime) [cachedTime, cachedTimeText] = [time, new Date(time).toISOString()];
  return cachedTimeText;
}

/**
 * Returns the holder that a text of `packMetadata` or `packHolder` describes, or `undefined` for any other text.
 * @param since time from the server, which replaces a time in the text
 */
export function unpackHolder(text: string, since?: Date): Holder | undefined {
  try {
    const fields: Partial<Record<string, unknown>> = JSON.parse(text);
    const { host, pid, label } = fields;
    if (typeof host !== 'string' || typeof pid !== 'number') return undefined;
    const holderSince = since ?? parseDate(fields['since']);
    return {
      host,
      pid,
      ...(typeof label === 'string' ? { label } : {}),
      ...(holderSince ? { since: holderSince } : {}),
    };
  } catch {
    return undefined;
  }
}

function parseDate(since: unknown): Date | undefined {
  const date = new Date(typeof since === 'string' ? since : Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
