import { plainSource } from './plain-source.js';

const NAME = /^\s*(?<rest>\.\.\.)?\s*(?<name>[\p{ID_Start}$_][\p{ID_Continue}$]*)/u;

export interface ArgumentNames {
  /** By position; `undefined` for one that has no name to rely on, or is taken apart. */
  readonly names: readonly (string | undefined)[];
  /** The last one takes all that is left over. */
  readonly rest: boolean;
  /** Names that a minifier may have made, perhaps of each other. */
  readonly doubtful: ReadonlySet<string>;
  readonly looksMinified: boolean;
}

/** No minifier gets so far that its names have four letters. */
const LONGEST_MANGLED = 3;

/**
 * What a function's source calls its arguments. Names survive the compilers that Nest is used with. A minifier replaces
 * them, perhaps by each other's: those that may be of its making are left out. `@LockKey` says them explicitly.
 */
export function argumentNames(source: string): ArgumentNames {
  const { parts, looksMinified } = splitArguments(plainSource(source));
  const longestDoubtful = looksMinified ? LONGEST_MANGLED : 1;
  const names: (string | undefined)[] = [];
  const doubtful = new Set<string>();
  let rest = false;
  for (const argument of parts) {
    const name = NAME.exec(argument)?.groups?.['name'];
    const isDoubtful = name !== undefined && name.length <= longestDoubtful;
    rest = argument.trimStart().startsWith('...');
    if (isDoubtful) doubtful.add(name);
    if (!rest) names.push(isDoubtful ? undefined : name);
  }
  return { names, rest, doubtful, looksMinified };
}

/** The text of each argument, with its default value. Every compiler prints a space behind them, and no minifier. */
function splitArguments(source: string): { readonly parts: readonly string[]; readonly looksMinified: boolean } {
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
    if (ends && char === ')') return { parts, looksMinified: /\S/u.test(source.charAt(index + 1)) };
    if (')]}'.includes(char)) depth -= 1;
  }
  return { parts: [], looksMinified: false };
}
