import { spawnSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { getuid } from 'node:process';

import type { CommandLine } from './orphan-guard.js';

/** The system account of a server that refuses to run as root. Whoever is not root runs it as himself. */
export class ServerAccount {
  readonly #switches: boolean;

  constructor(private readonly name: string) {
    this.#switches = getuid?.() === 0;
  }

  /** `command` under this account. A change of account takes the orphan guard off, so this puts it on again. */
  command(command: string, ...args: readonly string[]): CommandLine {
    if (!this.#switches) return [command, ...args];
    const account = ['--reuid', this.name, '--regid', this.name, '--clear-groups'];
    return ['setpriv', ...account, '--pdeathsig', 'KILL', '--', command, ...args];
  }

  /** Runs it to its end. @throws with its output when it fails */
  run(command: string, ...args: readonly string[]): void {
    const [program, ...rest] = this.command(command, ...args);
    const { status, stdout, stderr, error } = spawnSync(program, rest, { encoding: 'utf8', cwd: '/' });
    if (status !== 0) throw new Error(`${command} failed: ${stdout}${stderr}`, { cause: error });
  }

  own(directory: string): void {
    if (!this.#switches) return;
    chownSync(directory, this.#id('-u'), this.#id('-g'));
  }

  #id(which: '-u' | '-g'): number {
    return Number(spawnSync('id', [which, this.name], { encoding: 'utf8' }).stdout);
  }
}
