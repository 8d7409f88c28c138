import type { Rows } from '../connections/query.js';

export const KEYS_A_PAGE = 1_000;

/**
 * Page after page, in the order of the names that rows have for their keys.
 * @param pageAfter rows with a `name`, `KEYS_A_PAGE` of them at most
 * @param keyIn the key of a name; `undefined` where only a part of the key is kept
 */
export async function* keyPages(
  first: string,
  pageAfter: (name: string) => Promise<Rows>,
  keyIn: (name: string) => string | undefined,
): AsyncGenerator<readonly string[]> {
  for (let after: string | undefined = first; after !== undefined;) {
    // Text, or bytes of it.
    const names: string[] = (await pageAfter(after)).map(({ name }) =>
      (Buffer.isBuffer(name) ? name : String(name)).toString(),
    );
    yield names.map(keyIn).filter((key) => key !== undefined);
    after = names.length < KEYS_A_PAGE ? undefined : names.at(-1);
  }
}
