import { readdirSync } from 'node:fs';
import { findCommentFaults, MAX_SENTENCE_WORDS, roomOf } from './comments.js';
import { read, ROOT } from './pages.js';

const FILES = ['bench', 'lib', 'servers'].flatMap((folder) =>
  readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: 'utf8' })
    .map((file) => `${folder}/${file}`)
    .filter((file) => file.endsWith('.ts') && !file.includes('/node_modules/')),
);

const ROOMS = [...new Set(FILES.map(roomOf))];

const words = (count: number): string => Array.from({ length: count }, (_, i) => `word${i}`).join(' ');

describe('comments', () => {
  it.each(ROOMS)('open with a word that stands alone, and have short sentences: %s', (room) => {
    const files = FILES.filter((file) => roomOf(file) === room);
    expect(files).not.toEqual([]);
    const faults = files.map((file) => ({ file, faults: findCommentFaults(read(file)) }));
    expect(faults.filter((each) => each.faults.length > 0)).toEqual([]);
  });
});

describe('the check of comments', () => {
  it('refuses a sentence of 26 words, and takes one of 25', () => {
    expect(findCommentFaults(`/** ${words(MAX_SENTENCE_WORDS)}. */`)).toEqual([]);
    expect(findCommentFaults(`/** ${words(MAX_SENTENCE_WORDS)}. ${words(MAX_SENTENCE_WORDS)}. */`)).toEqual([]);
    expect(findCommentFaults(`const a = 1; // ${words(26)}`)).toEqual([expect.stringMatching(/^line 1 has 26 words/u)]);
    expect(findCommentFaults(`\n/**\n * ${words(13)}\n * ${words(13)}\n */`)).toEqual([
      expect.stringMatching(/^line 2 has 26 words/u),
    ]);
  });

  it('reads lines that follow each other as one comment', () => {
    expect(findCommentFaults(`// ${words(13)}\n// ${words(13)}`)).toHaveLength(1);
    expect(findCommentFaults(`// ${words(13)}\n\n// ${words(13)}`)).toEqual([]);
  });

  it('takes a tag, a list item and a paragraph for a beginning', () => {
    const long = words(20);
    expect(findCommentFaults(`/** ${long} @default ${long} */`)).toEqual([]);
    expect(findCommentFaults(`/**\n * ${long}\n * @param name ${long}\n * @throws ${long}\n */`)).toEqual([]);
    expect(findCommentFaults(`/**\n * ${long}\n *\n * ${long}:\n * - ${long}\n */`)).toEqual([]);
  });

  it('counts a code span, a link and an address as one word, and a dash as none', () => {
    const spans = ['`a b c`', '{@link A.b}', 'https://example.com/a.', '–'].join(' ');
    expect(findCommentFaults(`/** ${words(22)} ${spans} */`)).toEqual([]);
    expect(findCommentFaults(`/** ${words(23)} ${spans} */`)).toHaveLength(1);
  });

  it.each(['What', 'Whose', 'Who', 'Whoever', 'Those', 'Nobody', 'Somebody', 'Ours', 'Of', 'So', 'Such', 'Enough'])(
    'refuses a comment that opens with "%s"',
    (word) => {
      expect(findCommentFaults(`/** ${word} it is. */`)).toHaveLength(1);
      expect(findCommentFaults(`// ${word} it is.`)).toHaveLength(1);
      expect(findCommentFaults(`/** ${word}x it is, and it is ${word}. */`)).toEqual([]);
    },
  );

  it('sees no comment in a text or a pattern', () => {
    const long = words(26);
    expect(findCommentFaults(`const a = '// ${long}', b = \`/* ${long} */ \${a}\`, c = /\\/\\/ ${long}/u;`)).toEqual(
      [],
    );
  });
});
