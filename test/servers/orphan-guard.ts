import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

import type { CommandLine } from '../../servers/account.js';

const hasSetpriv = (process.env.PATH ?? '').split(delimiter).some((directory) => {
  try {
    accessSync(join(directory, 'setpriv'), constants.X_OK);
    return true;
  } catch {
    return false;
  }
});

/** Makes the kernel kill the program as soon as its parent is gone, however that died. Where setpriv is missing: nothing. */
export function withOrphanGuard(command: string, ...args: readonly string[]): CommandLine {
  return hasSetpriv ? ['setpriv', '--pdeathsig', 'KILL', '--', command, ...args] : [command, ...args];
}
