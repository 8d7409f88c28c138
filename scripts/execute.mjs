import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** Runs a command in the root of the repository, and shows only its standard error. Returns whether it succeeded. */
export async function execute(command, args, options = {}) {
  const defaults = { cwd: root, stdio: ['ignore', 'ignore', 'inherit'], killSignal: 'SIGKILL' };
  try {
    const [code, signal] = await once(spawn(command, args, { ...defaults, ...options }), 'exit');
    if (signal) console.error(`${command} ${args.join(' ')} was ended by ${signal}`);
    return code === 0;
  } catch (error) {
    console.error(error.message);
    return false;
  }
}
