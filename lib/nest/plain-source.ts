const COMMENT = /\/\*[^]*?\*\/|\/\/[^\n]*/uy;
const STRING = /'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*"/uy;
const REGULAR_EXPRESSION = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\p{ID_Continue}*/uy;
/** After these a slash begins a regular expression. After a value it divides. */
const VALUE_BEGINS = /(?:^|[=(,:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|in|of|void|case|await|yield|new|delete))$/u;

/** JavaScript without comments, and with `0` for strings, templates and regular expressions. */
export function plainSource(source: string): string {
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
