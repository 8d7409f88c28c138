import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '../..');

const EXAMPLES = readdirSync(join(ROOT, 'examples'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
const EXAMPLE_FOLDERS = ['examples', ...EXAMPLES.map(({ name }) => `examples/${name}`)];
const FOLDERS = ['.', 'api', 'bench', 'docs', 'docs/backends', ...EXAMPLE_FOLDERS, 'sample-app', 'stampede', 'test'];

/** All pages, by their paths from the root. */
export const PAGES = FOLDERS.flatMap((folder) => readdirSync(join(ROOT, folder)).map((file) => join(folder, file)))
  .filter((file) => file.endsWith('.md'))
  .toSorted();

/** Those for users: their `ts` blocks are whole programs. */
export const USER_PAGES = PAGES.filter((page) => /^(?:README|(?:docs|sample-app)\/)/u.test(page));

export function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** A page without its blocks of code. */
export function proseOf(page: string): string {
  return read(page).replaceAll(/```.*?```/gsu, '');
}
