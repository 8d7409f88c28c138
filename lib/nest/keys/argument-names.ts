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

const LOWERED = /\b__awaiter\(this, arguments, void 0, function\*? ?(?=\()/u;

/** Minifiers never need four letters. */
const LONGEST_MANGLED = 3;

/**
 * Reads the names of a function's arguments from its source. They survive the compilers that Nest is used with. A
 * minifier replaces them, perhaps by each other's: names that it may have made are left out.
 * @param keepsNames whether a source without spaces has its names all the same; asked where that matters
 */
export function argumentNames(source: string, keepsNames: () => boolean = () => false): ArgumentNames {
  const { parts, isDense } = splitArguments(argumentsBegin(plainSource(source)));
  const looksMinified =
    isDense && !parts.some((part) => (nameIn(part)?.length ?? 0) > LONGEST_MANGLED) && !keepsNames();
  const longestDoubtful = looksMinified ? LONGEST_MANGLED : 1;
  const names: (string | undefined)[] = [];
  const doubtful = new Set<string>();
  let rest = false;
  for (const argument of parts) {
    const name = nameIn(argument);
    const isDoubtful = name !== undefined && name.length <= longestDoubtful;
    rest = argument.trimStart().startsWith('...');
    if (isDoubtful) doubtful.add(name);
    if (!rest) names.push(isDoubtful ? undefined : name);
  }
  return { names, rest, doubtful, looksMinified };
}

/**
 * Whether the source of a class shows that names were kept although spaces were not, as by tsx: esbuild writes this
 * helper, and has another name for it where it renames. Where the class itself has a decorator, the helper is outside.
 */
export function showsKeptNames(classSource: string): boolean {
  return /\b__name\(/u.test(classSource);
}

function nameIn(argument: string): string | undefined {
  return NAME.exec(argument)?.groups?.['name'];
}

/** Compiled for ES2015, an asynchronous method with defaults has its arguments in a generator inside. */
function argumentsBegin(source: string): string {
  const begin = LOWERED.exec(source);
  return begin ? source.slice(begin.index + begin[0].length) : source;
}

/** The text of each argument. Every compiler for people prints a space behind the last, and no minifier does. */
function splitArguments(source: string): { readonly parts: readonly string[]; readonly isDense: boolean } {
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
      if (char === ')') return { parts, isDense: /\S/u.test(source.charAt(index + 1)) };
      start = index + 1;
    }
    if (')]}'.includes(char)) depth -= 1;
  }
  return { parts: [], isDense: false };
}

const COMMENT = /\/\*[^]*?\*\/|\/\/[^\n]*/uy;
const STRING = /'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*"/uy;
const REGULAR_EXPRESSION = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\p{ID_Continue}*/uy;
/** After these a slash begins a regular expression. After a value it divides. */
const VALUE_BEGINS = /(?:^|[=(,:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|in|of|void|case|await|yield|new|delete))$/u;

/** JavaScript without comments, and with `0` for strings, templates and regular expressions. */
function plainSource(source: string): string {
  return scan(source, 0, false).plain;
}

/** Reads to the end, or to the brace that closes a substitution `${…}`. */
function scan(source: string, start: number, inSubstitution: boolean): { readonly plain: string; readonly at: number } {
  let plain = '';
  let depth = 0;
  let at = start;
  while (at < source.length) {
    const comment = endOf(COMMENT, source, at);
    const literal = comment ?? endOfLiteral(source, at, plain);
    const char = literal === undefined ? source.charAt(at) : '';
    if (char === '{') depth += 1;
    if (char === '}') depth -= 1;
    if (inSubstitution && depth < 0) break;
    plain += comment === undefined && literal !== undefined ? '0' : char;
    at = literal ?? at + 1;
  }
  return { plain, at };
}

function endOfLiteral(source: string, at: number, before: string): number | undefined {
  switch (source.charAt(at)) {
    case "'":
    case '"':
      return endOf(STRING, source, at);
    case '`':
      return endOfTemplate(source, at);
    case '/':
      return VALUE_BEGINS.test(before.trimEnd().slice(-8)) ? endOf(REGULAR_EXPRESSION, source, at) : undefined;
    default:
      return undefined;
  }
}

function endOfTemplate(source: string, start: number): number {
  let at = start + 1;
  while (at < source.length && source.charAt(at) !== '`') {
    if (source.startsWith('${', at)) at = scan(source, at + 2, true).at + 1;
    else at += source.charAt(at) === '\\' ? 2 : 1;
  }
  return at + 1;
}

function endOf(pattern: RegExp, source: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(source) ? pattern.lastIndex : undefined;
}
