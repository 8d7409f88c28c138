import { spawnSync } from 'node:child_process';
import { getuid } from 'node:process';

/** Program and its arguments. */
export type CommandLine = readonly [command: string, ...args: string[]];

/**
 * System account of a server that refuses to run as root. Only root
 * switches to it; other users run the server under their own account.
 */
export class Account {
  readonly #isRoot = getuid?.() === 0;

  constructor(private readonly name: string) {}

  /**
   * Returns a command line that runs `command` under this account. The command dies with its parent. `setpriv` sets
   * that after the change of account, which would reset it.
   */
  command(command: string, ...args: readonly string[]): CommandLine {
    if (!this.#isRoot) return [command, ...args];
    const account = ['--reuid', this.name, '--regid', this.name, '--clear-groups'];
    return ['setpriv', ...account, '--pdeathsig', 'KILL', '--', command, ...args];
  }

  /** Makes the account the owner of a directory. Returns `false` where the account is missing. */
  own(directory: string): boolean {
    return !this.#isRoot || spawnSync('chown', [`${this.name}:`, directory]).status === 0;
  }
}
