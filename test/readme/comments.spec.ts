import { readdirSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { findCommentFaults, MAX_SENTENCE_WORDS, roomOf } from './comments.js';
import { read, ROOT } from './pages.js';

/** Rooms whose comments keep the rules. A room joins once it does; with all of them here, the list goes. */
const ROOMS_DONE: readonly string[] = [
  'bench',
  'bench/contestants',
  'bench/floors',
  'bench/report',
  'bench/scenarios',
  'lib',
  'lib/conformance',
  'lib/backends/zookeeper',
  'lib/backends/redlock',
  'lib/backends/redis',
  'lib/backends/memory',
  'lib/backends/memcached',
  'lib/backends/etcd',
  'lib/core',
  'lib/core/acquiring',
  'lib/core/contract',
  'lib/core/events',
  'lib/core/holding',
  'lib/core/kit',
  'lib/core/leading',
  'lib/core/leasing',
  'lib/core/line',
  'lib/core/looking',
  'lib/core/options',
  'lib/core/ordering',
  'lib/core/several',
  'lib/core/time',
  'lib/core/turns',
  'lib/decorators',
  'lib/inspector',
  'lib/inspector/page',
  'lib/metrics',
  'lib/nest',
  'lib/nest/keys',
  'lib/nest/leads',
  'lib/nest/lifecycle',
  'lib/nest/locked',
  'lib/nest/module',
  'lib/nest/requests',
  'lib/nest/results',
  'lib/nest/sequencer',
  'lib/nestjs-locks',
  'lib/opentelemetry',
  'lib/terminus',
  'lib/testing',
  'servers',
];

const FILES = ['bench', 'lib', 'servers'].flatMap((folder) =>
  readdirSync(`${ROOT}/${folder}`, { recursive: true, encoding: 'utf8' })
    .map((file) => `${folder}/${file}`)
    .filter((file) => file.endsWith('.ts') && !file.includes('/node_modules/')),
);

const words = (count: number): string => Array.from({ length: count }, (_, i) => `word${i}`).join(' ');

describe('comments', () => {
  it.each(ROOMS_DONE)('open with a word that stands alone, and have short sentences: %s', (room) => {
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
