import { proseOf, read, USER_PAGES } from './pages.js';

/** On a backend's page, in this order. */
const HEADINGS = [
  'Use',
  'Guarantee',
  'How it works',
  'Options',
  'Least privilege',
  'What an operator sees',
  'Limits',
  'Costs',
];

describe('the pages', () => {
  it('begin with a README of at most 1,100 words', () => {
    expect(words(read('README.md'))).toBeLessThanOrEqual(1_100);
  });

  it.each(USER_PAGES)('have paragraphs of at most 90 words: %s', (page) => {
    expect(paragraphsOf(page).filter((paragraph) => words(paragraph) > 90)).toEqual([]);
  });

  it.each(USER_PAGES.filter((page) => page.startsWith('docs/backends/')))(
    'have the headings of a backend: %s',
    (page) => {
      expect([...proseOf(page).matchAll(/^## (.*)$/gmu)].map(([, heading]) => heading)).toEqual(HEADINGS);
    },
  );
});

/** Each entry of a list counts by itself; a table counts for nothing. */
function paragraphsOf(page: string): string[] {
  const text = proseOf(page)
    .replaceAll(/^\|.*$/gmu, '')
    .replaceAll(/\]\([^)]*\)/gu, ']');
  return text.split(/\n\s*\n|\n(?=- |\d+\. )/u);
}

function words(text: string): number {
  return text.split(/\s+/u).filter((word) => word !== '').length;
}
