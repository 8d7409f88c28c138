import { spawnSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { getuid } from 'node:process';

/** A program and its arguments. */
export type CommandLine = readonly [command: string, ...args: string[]];

/** The system account of a server that refuses to run as root. Whoever is not root runs it as himself. */
export class Account {
  readonly #switches = getuid?.() === 0;

  constructor(private readonly name: string) {}

  /** `command` under this account, where it dies with its parent: a change of account would take such a wish back. */
  command(command: string, ...args: readonly string[]): CommandLine {
    if (!this.#switches) return [command, ...args];
    const account = ['--reuid', this.name, '--regid', this.name, '--clear-groups'];
    return ['setpriv', ...account, '--pdeathsig', 'KILL', '--', command, ...args];
  }

  own(directory: string): void {
    if (this.#switches) chownSync(directory, this.#id('-u'), this.#id('-g'));
  }

  #id(which: '-u' | '-g'): number {
    const { status, stdout } = spawnSync('id', [which, this.name], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`there is no account ${this.name}`);
    return Number(stdout);
  }
}
