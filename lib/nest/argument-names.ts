import { plainSource } from './plain-source.js';

const NAME = /^\s*(?<rest>\.\.\.)?\s*(?<name>[\p{ID_Start}$_][\p{ID_Continue}$]*)/u;

export interface ArgumentNames {
  /** By position; `undefined` where a name is doubtful, or the argument is destructured. */
  readonly names: readonly (string | undefined)[];
  /** The last one is a rest parameter. */
  readonly rest: boolean;
  /** Names that a minifier may have made. */
  readonly doubtful: ReadonlySet<string>;
  readonly looksMinified: boolean;
}

/** Minifiers never need four letters. */
const LONGEST_MANGLED = 3;

/**
 * Reads the names of a function's arguments from its source. They survive the compilers that Nest is used with. A
 * minifier replaces them, perhaps by each other's: names that it may have made are left out.
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

/** The text of each argument. Every compiler prints a space behind the last, and no minifier does. */
function splitArguments(source: string): { readonly parts: readonly string[]; readonly looksMinified: boolean } {
  const parts: string[] = [];
  let depth = 0;
  let start = -1;
  for (let index = 0; index < source.length; index += 1) {
    const char = source.charAt(index);
    if ('([{'.includes(char)) depth += 1;
    // A computed method name, `[key]() {}`, may have parentheses of its own.
    if (start < 0 && depth === 1 && char === '(') start = index + 1;
    else if (start >= 0 && depth === 1 && (char === ')' || char === ',')) {
      const part = source.slice(start, index);
      if (part.trim() !== '') parts.push(part);
      if (char === ')') return { parts, looksMinified: /\S/u.test(source.charAt(index + 1)) };
      start = index + 1;
    }
    if (')]}'.includes(char)) depth -= 1;
  }
  return { parts: [], looksMinified: false };
}
