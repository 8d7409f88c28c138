import type { InspectedParty, InspectorState } from '../inspector-state.js';

/**
 * Characters that are invisible or change the direction of the letters around them, and the backslash, which begins
 * their escapes.
 */
const ESCAPED_PATTERN = /\\|^ | $| (?= )|[^\P{Z} ]|\p{C}|\p{Default_Ignorable_Code_Point}/gu;
const MAX_KEY_LENGTH = 80;

/** Formats milliseconds with the units that fit their size. */
export function formatDuration(ms: number | undefined): string {
  if (ms === undefined) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Formats a time of ISO 8601 as the time of day where the reader is. */
export function formatTime(isoTime: string): string {
  return new Date(isoTime).toLocaleTimeString();
}

export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the label and the address of a process where they are known, such as `api-1 · host:42`. */
export function describeProcess({ label, host, pid }: InspectedParty): string {
  return [label, host && `${host}:${pid}`].filter(Boolean).join(' · ') || 'unknown';
}

/** Returns the names of a process, and its share of the key unless it has all of it. */
export function describeParty(party: InspectedParty): string {
  return describeProcess(party) + describeShare(party);
}

export function describeShare({ share }: InspectedParty): string {
  return share ? ` · ${share}` : '';
}

/** Returns the name of the backend for the front of a key or template, empty where there is one backend only. */
export function getBackendPrefix({ backends }: InspectorState, backend: string): string {
  return backends.length > 1 ? `${backend} · ` : '';
}

/** Escapes the characters of a key that cannot be seen, in the notation of JavaScript. */
export function escapeKey(key: string): string {
  return key.replace(ESCAPED_PATTERN, (char) =>
    char === '\\' ? '\\\\' : `\\u{${char.codePointAt(0)?.toString(16).toUpperCase()}}`,
  );
}

export function isLongKey(key: string): boolean {
  return key.length > MAX_KEY_LENGTH;
}

/** Escapes a key, and leaves out the middle of a long one. */
export function shortenKey(key: string): string {
  return escapeKey(isLongKey(key) ? `${key.slice(0, 50)}…${key.slice(-25)}` : key);
}
