import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { CLOCK_PATTERNS } from './clock-patterns.js';

const tests = join(import.meta.dirname, '..');
/** Their time is virtual. */
const VIRTUAL = /^(?:core|simulation|types)\//u;
const IN_VIRTUAL_TIME = ['short lease', 'short time-out'];
const OTHERS = /node_modules|^support\/clock-patterns/u;

const files = readdirSync(tests, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !OTHERS.test(path))
  .map((path) => ({ path, name: path.replace(/(?:\.spec)?\.ts$/u, ''), code: codeOf(join(tests, path)) }));

describe('what lets time judge', () => {
  it.each(Object.entries(CLOCK_PATTERNS))('%s: stands only where clock-patterns.ts says why', (title, pattern) => {
    const found = files
      .filter(
        ({ path, code }) => pattern.pattern.test(code) && !(IN_VIRTUAL_TIME.includes(title) && VIRTUAL.test(path)),
      )
      .map(({ name }) => name);
    const allowed = Object.values(pattern.places).flatMap((names) => names.trim().split(/\s+/u));
    const added = found.filter((name) => !allowed.includes(name));
    const advice = `Write ${pattern.instead}, or add the file to \`places\` in clock-patterns.ts, under its reason`;
    expect({ added, advice }).toEqual({ added: [], advice });
    expect(allowed.filter((name) => !found.includes(name))).toEqual([]);
  });

  it('is judged by toTakeLessThan where it is an upper limit', () => {
    const raw = /(?:performance|Date)\.now\(\) - \w+\)\.toBeLess/u;
    expect(files.filter(({ code }) => raw.test(code)).map(({ path }) => path)).toEqual([]);
  });
});

/** Returns a file's lines that are neither comments nor imports. */
function codeOf(file: string): string {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => !/^\s*(?:\*|\/\/|\/\*|import)/u.test(line)).join('\n');
}
