import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Report } from '../../stampede/report.js';

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

describe('the figures of README.md', () => {
  it('are those of three stampedes, which stampede/README.md says how to run', () => {
    const reports: readonly Report[] = JSON.parse(read('stampede/results.json'));
    const rows = (['sold', 'oversold', 'refused'] as const).map((name) => [
      name,
      ...reports.map((report) => report[name].toLocaleString('en')),
    ]);
    const [, table = ''] = /npm run stampede.*\n.*\n((?:\|.*\n)+)/u.exec(read('README.md')) ?? [];
    const shown = table.trim().split('\n');
    expect(
      shown.map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      ),
    ).toEqual(rows);
  });
});
