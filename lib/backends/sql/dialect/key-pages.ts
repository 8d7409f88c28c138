import type { Rows } from '../connections/query.js';

export const KEYS_A_PAGE = 1_000;

/**
 * Page after page, in the order of the names that rows have for their keys.
 * @param pageFrom rows with a `name` that compares so with the given one, `KEYS_A_PAGE` of them at most
 * @param keyIn the key of a name; `undefined` where only a part of the key is kept
 */
export async function* keyPages(
  first: string,
  pageFrom: (comparison: '>=' | '>', name: string) => Promise<Rows>,
  keyIn: (name: string) => string | undefined,
): AsyncGenerator<readonly string[]> {
  let comparison: '>=' | '>' = '>=';
  for (let from: string | undefined = first; from !== undefined; comparison = '>') {
    // Text, or bytes of it.
    const names: string[] = (await pageFrom(comparison, from)).map(({ name }) =>
      (Buffer.isBuffer(name) ? name : String(name)).toString(),
    );
    yield names.map(keyIn).filter((key) => key !== undefined);
    from = names.length < KEYS_A_PAGE ? undefined : names.at(-1);
  }
}
