import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { headingName } from '../../site/.vitepress/links.js';
import { navigation } from '../../site/.vitepress/navigation.js';
import { PAGES, proseOf, read, ROOT } from './pages.js';

const { homepage, repository, bugs } = JSON.parse(read('package.json')) as {
  readonly homepage: string;
  readonly repository: { readonly url: string };
  readonly bugs: { readonly url: string };
};
const HOME = homepage.replace('#readme', '');
const OWN = [`${HOME}/blob/main/`, `${HOME}/tree/main/`, `${HOME}/raw/main/`];

const DOCS = PAGES.filter((page) => /^docs\/(?!README)/u.test(page));

const LINK = /\]\((?<path>[^)#]*)#?(?<heading>[^)]*)\)/gu;

describe('links', () => {
  it.each(PAGES)('of %s lead to a file, and to a heading of it', (page) => {
    for (const { path, file, heading } of linksOf(page)) {
      expect({ path, exists: existsSync(join(ROOT, file)) }).toEqual({ path, exists: true });
      if (heading !== '') expect({ path, headings: headingsOf(file) }).toEqual({ path, headings: including(heading) });
    }
  });

  it('of the README work on the page of the package', () => {
    expect(linksOf('README.md').filter(({ path }) => !path.startsWith(HOME))).toEqual([]);
  });

  it('name the repository as package.json does', () => {
    expect([repository.url, bugs.url]).toEqual([`git+${HOME}.git`, `${HOME}/issues`]);
    for (const page of PAGES) {
      const others = [...read(page).matchAll(/https:\/\/github\.com\/[\w-]+\/nestjs-distributed-lock\b/gu)];
      expect({ page, names: others.filter(([name]) => name !== HOME) }).toEqual({ page, names: [] });
    }
  });

  it('of the index lead to every page of docs', () => {
    const linked = linksOf('docs/README.md').map(({ file }) => file);
    expect(linked).toEqual(including(...DOCS));
  });

  it('of the side bar of the site lead to every page of docs', () => {
    const linked = navigation(read('docs/README.md')).flatMap(({ items }) => items.map(({ link }) => link));
    expect(linked).toEqual(including(...DOCS.map((page) => `/${page}`)));
  });
});

interface Link {
  readonly path: string;
  /** From the root. */
  readonly file: string;
  readonly heading: string;
}

/** Those that lead into this repository, by a relative path or by its address. */
function linksOf(page: string): Link[] {
  return [...proseOf(page).matchAll(LINK)].flatMap(({ groups }) => {
    const { path = '', heading = '' } = groups ?? {};
    const own = OWN.find((start) => path.startsWith(start));
    if (own !== undefined) return [{ path, file: path.slice(own.length), heading }];
    if (/^https?:/u.test(path)) return [];
    return [{ path, file: path === '' ? page : join(dirname(page), path), heading }];
  });
}

/** As they are named in links. */
function headingsOf(page: string): string[] {
  return [...proseOf(page).matchAll(/^#+ (?<title>.*)$/gmu)].map(({ groups }) => headingName(groups?.['title'] ?? ''));
}

function including(...texts: string[]): unknown {
  return expect.arrayContaining(texts);
}
