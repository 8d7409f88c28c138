import type { Random } from '../../support/random.js';

/** Faults of a connection. Each gets the answers, one by one, and says what arrives. */
const FAULTS: Readonly<Record<string, (answers: readonly string[], random: Random) => string>> = {
  nothing: (answers) => answers.join(''),
  'an end before the end': (answers, random) => {
    const text = answers.join('');
    return text.slice(0, random.below(text.length + 1));
  },
  'junk between': (answers, random) => inserted(answers.join(''), junk(random), random),
  'a plausible line between': (answers, random) => spliced(answers, 0, random, `${random.oneOf(LINES)}\r\n`),
  'a plausible line instead': (answers, random) => spliced(answers, 1, random, `${random.oneOf(LINES)}\r\n`),
  'an answer twice': (answers, random) => spliced(answers, 0, random, random.oneOf(answers)),
  'an answer missing': (answers, random) => spliced(answers, 1, random),
  'answers reordered': (answers, random) => shuffled(answers, random).join(''),
  'lines reordered': (answers, random) => shuffled(linesOf(answers), random).join(''),
  'two lines exchanged': (answers, random) => {
    const lines = linesOf(answers);
    const [a, b] = [random.below(lines.length), random.below(lines.length)];
    [lines[a], lines[b]] = [lines[b] ?? '', lines[a] ?? ''];
    return lines.join('');
  },
  'a byte changed': (answers, random) => {
    const text = answers.join('');
    const at = random.below(text.length);
    return text.slice(0, at) + String.fromCharCode(random.below(256)) + text.slice(at + 1);
  },
};

export const FAULT_NAMES = Object.keys(FAULTS);

/** The bytes that arrive, in the pieces in which they do. */
export function mangle(fault: string, answers: readonly string[], random: Random): Buffer[] {
  const rest = Buffer.from(FAULTS[fault]?.(answers, random) ?? '', 'latin1');
  const chunks: Buffer[] = [];
  for (let at = 0; at < rest.length;) {
    const size = 1 + random.below(random.oneOf([1, 8, 200]));
    chunks.push(rest.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

const LINES = [
  'HD',
  'HD c1',
  'HD O1',
  'NS',
  'NF',
  'EX',
  'EN',
  'VA 0 c1 t9 O1\r\n',
  'VA 9999999 c1',
  'STORED',
  'NOT_STORED',
  'EXISTS',
  'END',
  'VALUE lock:l:k 0 2 1\r\nxy',
  'VALUE lock:l:k 0 99999999 1',
  '17',
  '1800000000000000',
  'MN',
  'ERROR',
  'CLIENT_ERROR bad data chunk',
  'SERVER_ERROR out of memory storing object',
  'STAT time 12',
  '',
  '-ERR unknown command',
  'HTTP/1.1 400 Bad Request',
];

function junk(random: Random): string {
  return Array.from({ length: 1 + random.below(40) }, () => String.fromCharCode(random.below(256))).join('');
}

function inserted(text: string, what: string, random: Random): string {
  const at = random.below(text.length + 1);
  return text.slice(0, at) + what + text.slice(at);
}

function spliced(answers: readonly string[], remove: number, random: Random, ...add: readonly string[]): string {
  return answers.toSpliced(random.below(answers.length), remove, ...add).join('');
}

function shuffled(parts: readonly string[], random: Random): string[] {
  return parts
    .map((part) => ({ part, order: random.below(2 ** 30) }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ part }) => part);
}

function linesOf(answers: readonly string[]): string[] {
  return answers
    .join('')
    .split(/(?<=\r\n)/)
    .filter((line) => line !== '');
}
