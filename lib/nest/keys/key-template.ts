import { assertKey, LockConfigurationError, quote } from '../../core/index.js';

/** Path of a placeholder, split at its dots: `['dto', 'sku']` for `:dto.sku`. */
export type PlaceholderPath = readonly [head: string, ...rest: string[]];

const PATH_PATTERN_SOURCE = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*(?:\.[\p{ID_Continue}$]+)*`;
/**
 * Pattern of escapes and placeholders. Without braces, a name ends before trailing underscores, so that `:a_:b` has two
 * placeholders.
 */
const ESCAPE_OR_PLACEHOLDER_PATTERN = new RegExp(
  String.raw`\\(?<escapedChar>[\\:])|:\{(?<bracedPath>[^}]*)\}|:(?<barePath>${PATH_PATTERN_SOURCE}(?<!_))`,
  'gu',
);
const PATH_PATTERN = new RegExp(`^${PATH_PATTERN_SOURCE}$`, 'u');

/**
 * Template such as `lock_sale_:id`, split at its placeholders. A placeholder is `:id`, `:dto.sku` or, where letters
 * follow, `:{id}st`. `\\:` stands for a colon, `\\\\` for a backslash. A colon that no name follows stands for itself.
 */
export interface KeyTemplate {
  readonly source: string;
  readonly leadingText: string;
  readonly placeholders: readonly { readonly path: PlaceholderPath; readonly textAfter: string }[];
}

/** @throws LockConfigurationError with the option `key`: the template can never make a valid key */
export function parseTemplate(source: string): KeyTemplate {
  if (typeof source !== 'string') assertKey(source);
  const paths: PlaceholderPath[] = [];
  let leadingText = '';
  const textsAfter: string[] = [];
  const appendText = (text: string): void => {
    if (textsAfter.length === 0) leadingText += text;
    else textsAfter.push(textsAfter.pop() + text);
  };
  let previousMatchEnd = 0;
  for (const match of source.matchAll(ESCAPE_OR_PLACEHOLDER_PATTERN)) {
    const { escapedChar, bracedPath, barePath = '' } = match.groups ?? {};
    appendText(source.slice(previousMatchEnd, match.index) + (escapedChar ?? ''));
    previousMatchEnd = match.index + match[0].length;
    if (escapedChar !== undefined) continue;
    textsAfter.push('');
    paths.push(parsePath(bracedPath ?? barePath, source));
  }
  appendText(source.slice(previousMatchEnd));
  if (/[{}]/u.test(leadingText + textsAfter.join('')))
    throw createTemplateError(
      'braces make no placeholder here. Write :id or :{id}, or a function for a literal brace',
      source,
    );
  // The text after a placeholder has to differ from percent-encoded values, because it marks the end of the value.
  if (textsAfter.slice(0, -1).includes(''))
    throw createTemplateError('two placeholders need something between them', source);
  if (textsAfter.some((text) => text.startsWith('%')))
    throw createTemplateError('a "%" cannot follow a placeholder', source);
  assertKey(paths.length === 0 ? leadingText : `${leadingText}${textsAfter.join('')}:`);
  return {
    source,
    leadingText,
    placeholders: paths.map((path, index) => ({ path, textAfter: textsAfter[index] ?? '' })),
  };
}

function parsePath(text: string, source: string): PlaceholderPath {
  if (!PATH_PATTERN.test(text)) throw createTemplateError(`:{${text}} names no argument`, source);
  const [head = '', ...rest] = text.split('.');
  return [head, ...rest];
}

function createTemplateError(reason: string, source: string): LockConfigurationError {
  return new LockConfigurationError(`${quote(source)} is no lock key: ${reason}`, 'key');
}
