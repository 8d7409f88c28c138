/** What people have written about changes, by the names of these: why they change nothing. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const RESULTS = join(import.meta.dirname, 'results');
const REMARKS = join(RESULTS, 'remarks.json');

const remarks = existsSync(REMARKS) ? JSON.parse(readFileSync(REMARKS, 'utf8')) : {};

export function remarkOn(change) {
  return remarks[nameOf(change)];
}

export function nameOf({ kind, hash, subject, file, line, before, after }) {
  if (kind === 'revert') return `${hash.slice(0, 8)} ${subject}`;
  return `${file}:${line} ${before} → ${after || 'nothing'}`.replaceAll(/\s+/gu, ' ');
}
