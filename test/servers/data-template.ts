import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';

import type { ServerRecipe } from '../../servers/recipe.js';

/**
 * A fresh data directory of a database server. Making one takes the server seconds, so it is made once, stays in the
 * temporary directory of the machine, and is copied for each start.
 */
export class DataTemplate {
  readonly #directory: string;

  constructor(private readonly recipe: Required<Pick<ServerRecipe, 'account' | 'initialise'>>) {
    const how = createHash('sha256').update(recipe.initialise('').join('\0')).digest('hex').slice(0, 12);
    this.#directory = join(env['LOCK_TEMPLATES'] ?? tmpdir(), `data-template-${how}`);
  }

  /** Copies it to a directory that does not exist yet. */
  async copyTo(directory: string): Promise<void> {
    if (!existsSync(this.#directory)) await this.#make();
    const { status, stderr } = spawnSync('cp', ['-a', '--reflink=auto', this.#directory, directory]);
    if (status !== 0) throw new Error(`The data template could not be copied: ${String(stderr)}`);
  }

  /** Another worker of the test run may do the same at the same time: whoever is ready first wins. */
  async #make(): Promise<void> {
    const draft = await mkdtemp(`${this.#directory}-draft-`);
    this.#fill(draft);
    try {
      await rename(draft, this.#directory);
    } catch (error) {
      await rm(draft, { recursive: true });
      if (!existsSync(this.#directory)) throw error;
    }
  }

  #fill(directory: string): void {
    this.recipe.account.own(directory);
    const [command, ...args] = this.recipe.initialise(directory);
    const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', cwd: '/' });
    if (status !== 0) throw new Error(`${command} failed: ${stdout}${stderr}`, { cause: error });
  }
}
