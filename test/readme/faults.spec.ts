import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const TESTS = join(import.meta.dirname, '..');
const PAGE = join(TESTS, '../docs/faults.md');

/** Codes at the beginning of a name, or in brackets at its end. */
const CITED = /['`"](?<first>[ARMZSE]\d+(?:, [ARMZSE]\d+)*): |\((?<last>[ARMZSE]\d+)\)['`"]/gu;
const ROW = /^- \*\*(?<code>[ARMZSE]\d+)\*\* .*\((?<places>[a-z/, ]+)\)$/gmu;

describe('the catalogue of faults', () => {
  /** The folders, below test, whose names of tests cite a code. */
  const cited = new Map<string, Set<string>>();
  /** The folders that the page names for a code. */
  const listed = new Map<string, string[]>();

  beforeAll(async () => {
    const files = (await readdir(TESTS, { recursive: true })).filter((file) => file.endsWith('.ts'));
    for (const file of files.filter((name) => !name.includes('node_modules'))) {
      for (const { groups } of (await readFile(join(TESTS, file), 'utf8')).matchAll(CITED)) {
        for (const code of (groups?.['first'] ?? groups?.['last'] ?? '').split(', ')) {
          cited.set(code, (cited.get(code) ?? new Set()).add(dirname(file)));
        }
      }
    }
    for (const { groups } of (await readFile(PAGE, 'utf8')).matchAll(ROW)) {
      listed.set(groups?.['code'] ?? '', (groups?.['places'] ?? '').split(', '));
    }
  });

  it('has each code that a test cites, and no code that none cites', () => {
    expect([...listed.keys()].toSorted()).toEqual([...cited.keys()].toSorted());
  });

  it('names folders in which the code is tested', () => {
    for (const [code, places] of listed) {
      const folders = [...(cited.get(code) ?? [])];
      const missing = places.filter((place) => !folders.some((folder) => `${folder}/`.startsWith(`${place}/`)));
      expect({ code, missing }).toEqual({ code, missing: [] });
    }
  });
});
