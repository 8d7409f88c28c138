import { type ReplyPart, ReplyParser } from '../../../lib/backends/memcached/transport/reply-parser.js';
import { describeWanted } from '../../support/wanted-backends.js';

/** Every kind of reply. The blocks hold what would be lines, and bytes of which none is a character by itself. */
const TRANSCRIPT = [
  'VERSION 1.6.18\r\n',
  'MN\r\n',
  'HD O1\r\n',
  'NS c0 O2\r\n',
  'EN\r\n',
  'VA 9 c12 t-1 O3\r\n\u00fc\u{1f512}\r\nE\r\n',
  'VA 0 c13 O4\r\n\r\n',
  'VA 16 O5\r\n1795258604362001\r\n',
  'STORED\r\n',
  'VALUE lock:l:key 0 18 18446744073709551615\r\nEND\r\nVALUE x 0 1 1\r\n',
  'VALUE lock:f:key 0 2\r\n17\r\n',
  'END\r\n',
  '17\r\n',
  'STAT version 1.6.18\r\n',
  'STAT pid 1\r\n',
  'END\r\n',
  'SERVER_ERROR out of memory storing object\r\n',
  '\r\n',
].join('');

const PARTS: readonly ReplyPart[] = [
  { line: 'VERSION 1.6.18' },
  { line: 'MN' },
  { line: 'HD O1' },
  { line: 'NS c0 O2' },
  { line: 'EN' },
  { line: 'VA 9 c12 t-1 O3', data: '\u00fc\u{1f512}\r\nE' },
  { line: 'VA 0 c13 O4', data: '' },
  { line: 'VA 16 O5', data: '1795258604362001' },
  { line: 'STORED' },
  { line: 'VALUE lock:l:key 0 18 18446744073709551615', data: 'END\r\nVALUE x 0 1 1' },
  { line: 'VALUE lock:f:key 0 2', data: '17' },
  { line: 'END' },
  { line: '17' },
  { line: 'STAT version 1.6.18' },
  { line: 'STAT pid 1' },
  { line: 'END' },
  { line: 'SERVER_ERROR out of memory storing object' },
  { line: '' },
];

describeWanted(['memcached'], 'replies', () => {
  const bytes = Buffer.from(TRANSCRIPT);

  it('are the same wherever the network cuts them in two', () => {
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(parse(bytes.subarray(0, at), bytes.subarray(at))).toEqual(PARTS);
    }
  });

  it('are the same in pieces of every size', () => {
    for (let size = 1; size <= 40; size += 1) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (__, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      expect(parse(...chunks)).toEqual(PARTS);
    }
  });

  it('come as soon as they are complete, also those before something that makes no sense', () => {
    const parser = new ReplyParser();
    const seen: ReplyPart[] = [];
    expect(() => {
      for (const part of parser.parse(Buffer.from('HD\r\nEN\r\n\0\r\nHD\r\n'))) seen.push(part);
    }).toThrow('no answer of a memcached server');
    expect(seen).toEqual([{ line: 'HD' }, { line: 'EN' }]);
  });

  it.each([
    ['a line that ends without CR', 'HD\nEN\r\n'],
    ['a control character', 'HD \x07\r\n'],
    ['a NUL before the end of the line has come', 'H\0'],
    ['a CR in the middle', 'HD\rEN\r\n'],
    ['bytes of a binary protocol', '\x4a\x00\x00\x00\x0a'],
    ['text that is not ASCII', 'caf\u00e9\r\n'],
    ['a line that never ends', 'x'.repeat(5_000)],
    ['a line that is too long', `${'x'.repeat(5_000)}\r\n`],
    ['a block without a size', 'VA\r\n'],
    ['a block with a size that is no number', 'VA x c1\r\n'],
    ['a block with a negative size', 'VALUE k 0 -1 5\r\n'],
    ['a block larger than any item', 'VA 1048577\r\n'],
    ['a block of an absurd size', 'VALUE k 0 99999999999999999999 5\r\n'],
    ['a block that is longer than its size', 'VA 3 c1\r\nabcd\r\n'],
    ['a block that ends with a bare line feed', 'VA 3 c1\r\nabc\nHD\r\n'],
  ])('are none, and said to be none: %s', (_what, text) => {
    expect(() => parse(Buffer.from(text))).toThrow(expect.objectContaining({ kind: 'protocol' }));
    const single = Array.from(Buffer.from(text), (byte) => Buffer.of(byte));
    expect(() => parse(...single)).toThrow(expect.objectContaining({ kind: 'protocol' }));
  });

  it('are not kept longer than a line or a block may be', () => {
    const parser = new ReplyParser();
    expect(() => {
      for (let i = 0; i < 10_000; i += 1) Array.from(parser.parse(Buffer.from('x')));
    }).toThrow('no answer of a memcached server: "xxx');
  });
});

function parse(...chunks: readonly Buffer[]): ReplyPart[] {
  const parser = new ReplyParser();
  return chunks.flatMap((chunk) => Array.from(parser.parse(chunk)));
}
