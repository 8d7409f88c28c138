import type { Line, LineEntry } from './line.js';

/** Returns a line as text, for a store that keeps one value a key. */
export function packLine(line: Line): string {
  return JSON.stringify(
    line.map(({ owner, until, token, description }) => [owner, until, String(token ?? ''), description]),
  );
}

/** Reads a text of `packLine`. Returns an empty line for any other text. */
export function unpackLine(text: string): Line {
  try {
    const entries: unknown = JSON.parse(text);
    return Array.isArray(entries) ? entries.flatMap(parseEntry) : [];
  } catch {
    return [];
  }
}

function parseEntry(fields: unknown): LineEntry[] {
  if (!Array.isArray(fields)) return [];
  const [owner, until, token, description]: unknown[] = fields;
  if (
    typeof owner !== 'string' ||
    typeof until !== 'number' ||
    typeof token !== 'string' ||
    typeof description !== 'string'
  ) {
    return [];
  }
  return [{ owner, until, description, ...(token === '' ? {} : { token: BigInt(token) }) }];
}
