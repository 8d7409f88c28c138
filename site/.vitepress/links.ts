import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

/** Folders and files of the repository that have pages here. */
export const SHOWN = ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'docs', 'sample-app'];

export const PACKAGE = JSON.parse(read('package.json')) as {
  readonly name: string;
  readonly description: string;
  readonly homepage: string;
  readonly exports: Readonly<Record<string, unknown>>;
};

export const REPOSITORY = PACKAGE.homepage.replace('#readme', '');
const FILES = `${REPOSITORY}/blob/main/`;

export function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/**
 * Where a link of a page leads. Pages are on the site, also those that the README names by their addresses in the
 * repository; everything else of the repository is there.
 */
export function linkOf(href: string, page: string): string {
  if (/^(?:#|\w+:)/u.test(href) && !href.startsWith(FILES)) return href;
  const path = href.startsWith(FILES) ? href.slice(FILES.length) : posix.join(posix.dirname(page), href);
  return isPage(path) ? `/${path.replace(/(?:README|index)\.md/u, '')}` : FILES + path;
}

/** The README names its pictures by their addresses, which the package's page needs. The site has copies of its own. */
export function pictureOf(source: string, page: string): string {
  const raw = `${REPOSITORY}/raw/main/`;
  return source.startsWith(raw) ? `./${posix.relative(posix.dirname(page), source.slice(raw.length))}` : source;
}

function isPage(path: string): boolean {
  return /\.md(?:#|$)/u.test(path) && [...SHOWN, 'api'].some((shown) => path === shown || path.startsWith(`${shown}/`));
}

/** A heading as links name it, here and in the repository. */
export function headingName(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
