const NAME_PATTERN = /^\s*(?:\.\.\.)?\s*(?<name>[\p{ID_Start}$_][\p{ID_Continue}$]*)/u;

export interface ArgumentNames {
  /**
   * Names by position, without a rest parameter. `undefined` for a destructured argument, or where a minifier may have
   * made the name.
   */
  readonly names: readonly (string | undefined)[];
  readonly hasRestParameter: boolean;
  readonly possiblyMinifiedNames: ReadonlySet<string>;
  readonly looksMinified: boolean;
}

/** Call by which TypeScript, compiling for ES2015, replaces the body of an asynchronous method. */
const AWAITER_PATTERN = /\b__awaiter\(this, arguments, void 0, function\*? ?(?=\()/u;

/** Maximum length of a minifier's name for an argument: four letters are never needed. */
const MAX_MINIFIED_LENGTH = 3;

/**
 * Reads the names of a function's arguments from its source. Leaves out names that a minifier may have made, because
 * another argument may have had such a name in the original source.
 * @param keepsNames returns whether the build keeps names; called only when spaces were removed and all names are short
 */
export function readArgumentNames(source: string, keepsNames: () => boolean = () => false): ArgumentNames {
  const { parameters, lacksSpace } = splitParameters(skipToParameters(blankLiterals(source)));
  const hasOnlyShortNames = !parameters.some((text) => (getParameterName(text)?.length ?? 0) > MAX_MINIFIED_LENGTH);
  const looksMinified = lacksSpace && hasOnlyShortNames && !keepsNames();
  const maxMinifiedLength = looksMinified ? MAX_MINIFIED_LENGTH : 1;
  const names: (string | undefined)[] = [];
  const possiblyMinifiedNames = new Set<string>();
  let hasRestParameter = false;
  for (const text of parameters) {
    const name = getParameterName(text);
    const mayBeMinified = name !== undefined && name.length <= maxMinifiedLength;
    hasRestParameter = text.trimStart().startsWith('...');
    if (mayBeMinified) possiblyMinifiedNames.add(name);
    if (!hasRestParameter) names.push(mayBeMinified ? undefined : name);
  }
  return { names, hasRestParameter, possiblyMinifiedNames, looksMinified };
}

/**
 * Returns whether the source of a class calls esbuild's helper `__name`, as builds by tsx do, which keep names. A build
 * that shortens names also shortens the name of the helper. Returns `false` for a class with a decorator, because its
 * calls of the helper are outside of the class.
 */
export function callsNameHelper(classSource: string): boolean {
  return /\b__name\(/u.test(classSource);
}

function getParameterName(text: string): string | undefined {
  return NAME_PATTERN.exec(text)?.groups?.['name'];
}

/**
 * Returns the source of the generator to which TypeScript moves the parameters of an asynchronous method with default
 * values, when it compiles for ES2015. Returns any other source unchanged.
 */
function skipToParameters(source: string): string {
  const awaiterCall = AWAITER_PATTERN.exec(source);
  return awaiterCall ? source.slice(awaiterCall.index + awaiterCall[0].length) : source;
}

/** Returns the parameters, and whether no space follows them. Only minifying compilers leave out this space. */
function splitParameters(source: string): { readonly parameters: readonly string[]; readonly lacksSpace: boolean } {
  const parameters: string[] = [];
  let depth = 0;
  let start = -1;
  for (let index = 0; index < source.length; index += 1) {
    const char = source.charAt(index);
    if ('([{'.includes(char)) depth += 1;
    // A computed method name, `[key]() {}`, may have parentheses of its own.
    if (start < 0 && depth === 1 && char === '(') start = index + 1;
    else if (start >= 0 && depth === 1 && (char === ')' || char === ',')) {
      const text = source.slice(start, index);
      if (text.trim() !== '') parameters.push(text);
      if (char === ')') return { parameters, lacksSpace: /\S/u.test(source.charAt(index + 1)) };
      start = index + 1;
    }
    if (')]}'.includes(char)) depth -= 1;
  }
  return { parameters: [], lacksSpace: false };
}

const COMMENT_PATTERN = /\/\*[^]*?\*\/|\/\/[^\n]*/uy;
const STRING_PATTERN = /'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*"/uy;
const REGULAR_EXPRESSION_PATTERN = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\p{ID_Continue}*/uy;
/** Pattern of text after which a slash begins a regular expression, and does not divide. */
const BEFORE_VALUE_PATTERN =
  /(?:^|[=(,:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|in|of|void|case|await|yield|new|delete))$/u;

/** Returns JavaScript without its comments, and with `0` for each string, template and regular expression. */
function blankLiterals(source: string): string {
  return blankLiteralsFrom(source, 0, false).code;
}

/**
 * Blanks the literals from `start` to the end of the source, or to the brace that closes a substitution `${…}`. Also
 * returns that position.
 */
function blankLiteralsFrom(
  source: string,
  start: number,
  isInSubstitution: boolean,
): { readonly code: string; readonly end: number } {
  let code = '';
  let depth = 0;
  let index = start;
  while (index < source.length) {
    const commentEnd = findMatchEnd(COMMENT_PATTERN, source, index);
    const literalEnd = commentEnd === undefined ? findLiteralEnd(source, index, code) : undefined;
    const char = commentEnd === undefined && literalEnd === undefined ? source.charAt(index) : '';
    if (char === '{') depth += 1;
    if (char === '}') depth -= 1;
    if (isInSubstitution && depth < 0) break;
    code += literalEnd === undefined ? char : '0';
    index = commentEnd ?? literalEnd ?? index + 1;
  }
  return { code, end: index };
}

function findLiteralEnd(source: string, index: number, codeBefore: string): number | undefined {
  switch (source.charAt(index)) {
    case "'":
    case '"':
      return findMatchEnd(STRING_PATTERN, source, index);
    case '`':
      return findTemplateEnd(source, index);
    case '/':
      // Eight characters hold the longest keyword of the pattern, and the character before it.
      return BEFORE_VALUE_PATTERN.test(codeBefore.trimEnd().slice(-8))
        ? findMatchEnd(REGULAR_EXPRESSION_PATTERN, source, index)
        : undefined;
    default:
      return undefined;
  }
}

function findTemplateEnd(source: string, start: number): number {
  let index = start + 1;
  while (index < source.length && source.charAt(index) !== '`') {
    if (source.startsWith('${', index)) index = blankLiteralsFrom(source, index + 2, true).end + 1;
    else index += source.charAt(index) === '\\' ? 2 : 1;
  }
  return index + 1;
}

function findMatchEnd(stickyPattern: RegExp, source: string, index: number): number | undefined {
  stickyPattern.lastIndex = index;
  return stickyPattern.test(source) ? stickyPattern.lastIndex : undefined;
}
