import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keep, letGo } from './kept.js';

/** A directory that ends with this process, even if that is killed. */
export async function temporaryDirectory(prefix: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), prefix));
  const keeper = keep({ directory: path, commands: [] });
  return { path, [Symbol.asyncDispose]: () => letGo(keeper) };
}
