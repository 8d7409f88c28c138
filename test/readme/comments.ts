import { dirname } from 'node:path';
import ts from 'typescript';

/** Number of words that a sentence of a comment may have. */
export const MAX_SENTENCE_WORDS = 25;

/** Words that hang on a noun which a reader of the comment has not met yet. */
const FORBIDDEN_OPENING =
  /^(?:What|Whose|Who|Whoever|Those|Nobody|Somebody|Ours|Of|So|Such|Enough)(?![\p{L}\p{N}_-])/iu;

/** A tag, with the name that belongs to it. The text behind it is a sentence of its own. */
const TAG = /(?:^|\s)@(?:(?:param|typeParam|template)\s+\S+|[\w-]+)/u;

/** End of a sentence, or of an item in a list of errors. An abbreviation ends none. */
const SENTENCE_END = /(?<=(?<!\b(?:e\.g|i\.e|vs))[.!?]["”)]*)\s+|;\s+(?=[A-Z`])/u;

/** Returns a line for each comment of a TypeScript source that opens with a forbidden word or has a sentence too long. */
export function findCommentFaults(source: string): string[] {
  return commentsOf(source).flatMap(({ line, text }) => {
    const prose = withOneWordSpans(text);
    const opening = FORBIDDEN_OPENING.exec(prose)?.[0];
    const longSentences = sentencesOf(prose)
      .map((sentence) => ({ sentence, words: countWords(sentence) }))
      .filter(({ words }) => words > MAX_SENTENCE_WORDS);
    return [
      ...(opening === undefined ? [] : [`line ${line} opens with "${opening}": ${prose.slice(0, 60)}`]),
      ...longSentences.map(({ sentence, words }) => `line ${line} has ${words} words: ${sentence}`),
    ];
  });
}

/** Returns the room of a file: its folder, down to the third level, such as `lib/core/time`. */
export function roomOf(file: string): string {
  return dirname(file).split('/').slice(0, 3).join('/');
}

interface Comment {
  readonly line: number;
  /** Text without comment marks; blank lines, list items and line breaks stay. */
  readonly text: string;
}

/** Returns the comments of a source; `//` lines that follow each other are one comment. */
function commentsOf(source: string): Comment[] {
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, true);
  const joined: { pos: number; end: number }[] = [];
  for (const { pos, end, kind } of commentRangesOf(file)) {
    const previous = joined.at(-1);
    const continues =
      kind === ts.SyntaxKind.SingleLineCommentTrivia &&
      previous !== undefined &&
      source.startsWith('//', previous.pos) &&
      /^\r?\n[ \t]*$/u.test(source.slice(previous.end, pos));
    if (continues) previous.end = end;
    else joined.push({ pos, end });
  }
  return joined.map(({ pos, end }) => ({
    line: file.getLineAndCharacterOfPosition(pos).line + 1,
    text: withoutMarks(source.slice(pos, end)),
  }));
}

/** Returns the comments around every token, in their order. Comment marks inside of texts and patterns are no comments. */
function commentRangesOf(file: ts.SourceFile): ts.CommentRange[] {
  const ranges = new Map<number, ts.CommentRange>();
  const visit = (node: ts.Node): void => {
    if (ts.isJSDoc(node)) return;
    const children = node.getChildren(file);
    children.forEach(visit);
    if (children.length > 0) return;
    const found = [
      ...(ts.getLeadingCommentRanges(file.text, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(file.text, node.getEnd()) ?? []),
    ];
    for (const range of found) ranges.set(range.pos, range);
  };
  visit(file);
  return [...ranges.values()].toSorted((a, b) => a.pos - b.pos);
}

function withoutMarks(comment: string): string {
  return comment
    .replaceAll(/^\s*\/\/+ ?/gmu, '')
    .replaceAll(/^\/\*+|\*+\/$/gu, '')
    .replaceAll(/^[ \t]*\*(?!\*) ?/gmu, '')
    .trim();
}

/** Replaces each code span, link and address by one word, and removes blocks of code. */
function withOneWordSpans(text: string): string {
  return text
    .replaceAll(/```.*?```/gsu, '\n\n')
    .replaceAll(/`[^`]*`|\{@link[^}]*\}/gu, (span) => span.replaceAll(/\s+/gu, '_').replaceAll('@', ''))
    .replaceAll(/https?:\/\/\S+?(?=[.,;:)]*(?:\s|$))/gu, 'address');
}

function sentencesOf(prose: string): string[] {
  return prose
    .split(/\n\s*\n|\n\s*(?=[-*] |\d+\. )/u)
    .flatMap((paragraph) => paragraph.split(TAG))
    .flatMap((text) => text.replaceAll(/\s+/gu, ' ').trim().split(SENTENCE_END));
}

/** Counts the words of a sentence; a sign that stands alone, such as a dash, is none. */
function countWords(sentence: string): number {
  return sentence.split(' ').filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}
