const COMMENT = /\/\*[^]*?\*\/|\/\/[^\n]*/uy;
const STRING = /'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*"/uy;
const REGULAR_EXPRESSION = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\p{ID_Continue}*/uy;
/** After a value a slash divides; after these a value begins. */
const VALUE_BEGINS = /(?:^|[=(,:[!&|?{};+\-*%~^<>]|\b(?:return|typeof|in|of|void|case|await|yield|new|delete))$/u;

/**
 * JavaScript without comments, and with `0` for strings, templates and regular expressions: nothing in them is taken for
 * syntax any more.
 */
export function plainSource(source: string): string {
  let plain = '';
  let at = 0;
  while (at < source.length) {
    const comment = endOf(COMMENT, source, at);
    const literal = comment ?? endOfLiteral(source, at, plain);
    plain += comment === undefined ? (literal === undefined ? source.charAt(at) : '0') : '';
    at = literal ?? at + 1;
  }
  return plain;
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
    if (source.startsWith('${', at)) at = endOfSubstitution(source, at + 2);
    else at += source.charAt(at) === '\\' ? 2 : 1;
  }
  return at + 1;
}

/** Behind the brace that closes what stands between `${` and `}`. */
function endOfSubstitution(source: string, start: number): number {
  let before = '';
  let depth = 1;
  let at = start;
  while (at < source.length && depth > 0) {
    const end = endOf(COMMENT, source, at) ?? endOfLiteral(source, at, before);
    if (end !== undefined) {
      before += '0';
      at = end;
      continue;
    }
    const char = source.charAt(at);
    if (char === '{') depth += 1;
    else if (char === '}') depth -= 1;
    before += char;
    at += 1;
  }
  return at;
}

function endOf(pattern: RegExp, source: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(source) ? pattern.lastIndex : undefined;
}
