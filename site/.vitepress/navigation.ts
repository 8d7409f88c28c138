import { linkOf } from './links.js';

interface Group {
  readonly text: string;
  readonly items: { readonly text: string; readonly link: string }[];
}

const LINK = /\[(?<text>[^\]]+)\]\((?<path>[^)]+)\)/gu;

/** The index of the pages, `docs/README.md`, as a side bar: a group for each heading, an item for each link. */
export function navigation(index: string): Group[] {
  return index
    .split(/^## /mu)
    .slice(1)
    .map((section) => ({ text: section.slice(0, section.indexOf('\n')), items: itemsOf(section) }));
}

function itemsOf(section: string): Group['items'] {
  return [...section.matchAll(LINK)].map(({ groups: { text = '', path = '' } = {} }) => ({
    text,
    link: linkOf(path, 'docs/README.md'),
  }));
}
