/** Comments, strings and template literals, so that nothing in them is taken for syntax. */
const OPAQUE = /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`/gu;
const NAME = /^\s*(?<rest>\.\.\.)?\s*(?<name>[\p{ID_Start}$_][\p{ID_Continue}$]*)/u;

export interface ArgumentNames {
  /** By position; `undefined` for a destructured argument, which has no name. */
  readonly names: readonly (string | undefined)[];
  /** The last one takes all that is left over. */
  readonly rest: boolean;
}

/**
 * What a function's source calls its arguments. Names survive the compilers that Nest is used with; a minifier replaces
 * them, and a wrapper made by another decorator has none of its own: `@LockKey` says them explicitly.
 */
export function argumentNames(source: string): ArgumentNames {
  const plain = source.replaceAll(OPAQUE, (text) => (text.startsWith('/') ? '' : '0'));
  const names: (string | undefined)[] = [];
  let rest = false;
  for (const argument of splitArguments(plain)) {
    const groups = NAME.exec(argument)?.groups;
    rest = argument.trimStart().startsWith('...');
    if (!rest) names.push(groups?.['name']);
  }
  return { names, rest };
}

/** The text of each argument, with its default value. */
function splitArguments(source: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = -1;
  for (let index = 0; index < source.length; index += 1) {
    const char = source.charAt(index);
    if (start < 0) {
      // A computed method name, `[key]() {}`, may have parentheses of its own.
      if (char === '[') depth += 1;
      else if (char === ']') depth -= 1;
      else if (char === '(' && depth === 0) start = index + 1;
      continue;
    }
    if ('([{'.includes(char)) depth += 1;
    const ends = depth === 0 && (char === ')' || char === ',');
    if (ends) {
      const part = source.slice(start, index);
      if (part.trim() !== '') parts.push(part);
      start = index + 1;
    }
    if (ends && char === ')') return parts;
    if (')]}'.includes(char)) depth -= 1;
  }
  return [];
}
