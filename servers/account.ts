import { spawnSync } from 'node:child_process';
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

  /** Gives the directory to the account; false when there is no such account. */
  own(directory: string): boolean {
    return !this.#switches || spawnSync('chown', [`${this.name}:`, directory]).status === 0;
  }
}
