import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = join(import.meta.dirname, '../..');
const PAGES = ['.', 'bench', 'docs', 'docs/backends', 'sample-app', 'test']
  .filter((folder) => existsSync(join(ROOT, folder)))
  .flatMap((folder) => readdirSync(join(ROOT, folder)).map((file) => join(folder, file)))
  .filter((file) => file.endsWith('.md'));

const LINK = /\]\((?!https?:)(?<path>[^)#]*)#?(?<heading>[^)]*)\)/gu;

describe('links from page to page', () => {
  it.each(PAGES)('of %s lead to a file, and to a heading of it', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8').replaceAll(/```.*?```/gsu, '');
    for (const { groups } of text.matchAll(LINK)) {
      const { path = '', heading = '' } = groups ?? {};
      const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
      expect({ path, exists: existsSync(file) }).toEqual({ path, exists: true });
      if (heading !== '') expect(headingsOf(readFileSync(file, 'utf8'))).toContain(heading);
    }
  });
});

/** As they are named in links. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (?<title>.*)$/gmu)].map(({ groups }) =>
    (groups?.['title'] ?? '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
