import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endKeeper, startKeeper } from './kept.js';

/** Makes a directory that ends with this process, even if that is killed. */
export async function makeTemporaryDirectory(prefix: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), prefix));
  const keeper = startKeeper({ directory: path, commands: [] });
  return { path, [Symbol.asyncDispose]: () => endKeeper(keeper) };
}
