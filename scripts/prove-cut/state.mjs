import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** What is known so far: written to a file after each step, so that any step may be the last one of a run. */
export class State {
  #file;

  constructor(directory) {
    this.directory = resolve(directory);
    mkdirSync(this.directory, { recursive: true });
    this.#file = join(this.directory, 'state.json');
    const nothing = { cover: { quick: {}, full: {} }, outcomes: { quick: {}, full: {} } };
    this.data = existsSync(this.#file) ? JSON.parse(readFileSync(this.#file, 'utf8')) : nothing;
  }

  /** Path of a scratch clone. It is outside of node_modules, whose files jest does not compile. */
  cloneNamed(name) {
    const id = createHash('sha256').update(this.directory).digest('hex').slice(0, 8);
    return join(tmpdir(), `prove-cut-${id}-${name}`);
  }

  /** All changes to try: mutants and reverts. */
  get changes() {
    if (!this.data.mutants) throw new Error('Nothing is drawn: begin with --phase draw');
    return [...this.data.mutants, ...this.data.reverts];
  }

  save() {
    writeFileSync(`${this.#file}.new`, JSON.stringify(this.data, undefined, 1));
    renameSync(`${this.#file}.new`, this.#file);
  }
}
