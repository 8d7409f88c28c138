import type { Rows } from '../connections/query.js';

export const KEYS_PER_PAGE = 1_000;

/**
 * Yields keys page by page, in the order of the names under which they are stored.
 * @param readPage returns at most `KEYS_PER_PAGE` rows, in the order of their `name`
 * @param toKey returns `undefined` for a long key, of which the name has only the beginning
 */
export async function* readKeyPages(
  firstName: string,
  readPage: (comparison: '>=' | '>', name: string) => Promise<Rows>,
  toKey: (name: string) => string | undefined,
): AsyncGenerator<readonly string[]> {
  let comparison: '>=' | '>' = '>=';
  for (let startName: string | undefined = firstName; startName !== undefined; comparison = '>') {
    // Drivers return text, or its bytes.
    const names: string[] = (await readPage(comparison, startName)).map(({ name }) =>
      (Buffer.isBuffer(name) ? name : String(name)).toString(),
    );
    yield names.map(toKey).filter((key) => key !== undefined);
    startName = names.length < KEYS_PER_PAGE ? undefined : names.at(-1);
  }
}
