import { assertKey, LockConfigurationError, quote } from '../../core/index.js';

/** `dto.sku` as `['dto', 'sku']`. */
export type Path = readonly [head: string, ...rest: string[]];

const PATH = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*(?:\.[\p{ID_Continue}$]+)*`;
/** Without braces a name ends before trailing underscores: `:a_:b` has two placeholders. */
const TOKEN = new RegExp(String.raw`\\(?<escaped>[\\:])|:\{(?<braced>[^}]*)\}|:(?<bare>${PATH}(?<!_))`, 'gu');
const WHOLE_PATH = new RegExp(`^${PATH}$`, 'u');

/**
 * `lock_sale_:id`, taken apart. A placeholder is `:id`, `:dto.sku` or, where letters follow, `:{id}st`; `\\:` is a colon
 * and `\\\\` a backslash; so is a colon that no name follows.
 */
export interface KeyTemplate {
  readonly source: string;
  /** The text before the placeholders. */
  readonly start: string;
  readonly placeholders: readonly { readonly path: Path; readonly textBehind: string }[];
}

/** @throws LockConfigurationError with the option `key`: it can never be one */
export function parseTemplate(source: string): KeyTemplate {
  if (typeof source !== 'string') assertKey(source);
  const texts = [''];
  const paths: Path[] = [];
  let end = 0;
  for (const match of source.matchAll(TOKEN)) {
    const { escaped, braced, bare = '' } = match.groups ?? {};
    texts.push(texts.pop() + source.slice(end, match.index) + (escaped ?? ''));
    end = match.index + match[0].length;
    if (escaped !== undefined) continue;
    texts.push('');
    paths.push(pathOf(braced ?? bare, source));
  }
  const [start, ...behind] = [...texts.slice(0, -1), texts.at(-1) + source.slice(end)];
  // A text ends each value. It does not begin with `%`, which escapes values.
  if (behind.slice(0, -1).includes('')) throw refused('two placeholders need something between them', source);
  if (behind.some((text) => text.startsWith('%'))) throw refused('a "%" cannot follow a placeholder', source);
  assertKey(paths.length === 0 ? start : `${start}${behind.join('')}:`);
  return { source, start, placeholders: paths.map((path, index) => ({ path, textBehind: behind[index] ?? '' })) };
}

function pathOf(text: string, source: string): Path {
  if (!WHOLE_PATH.test(text)) throw refused(`:{${text}} names no argument`, source);
  const [head = '', ...rest] = text.split('.');
  return [head, ...rest];
}

function refused(why: string, source: string): LockConfigurationError {
  return new LockConfigurationError(`${quote(source)} is no lock key: ${why}`, 'key');
}
