import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const KEEPER = join(import.meta.dirname, 'keeper.js');

/** Tasks of a keeper: a process that outlives the stampede for as long as it has to clean up. */
export interface KeeperTasks {
  /** Directory that the keeper removes at the end. */
  readonly directory: string;
  /** Commands that run one after the other while they succeed; the last one is a server. */
  readonly commands: readonly (readonly [command: string, ...args: string[]])[];
  readonly stopSignal?: NodeJS.Signals;
}

/** Exit code of a keeper, as of a shell, when a command is not installed. */
export const NOT_FOUND = 127;

/** Starts a keeper. It has a session of its own, where no Ctrl-C reaches it. */
export function startKeeper(tasks: KeeperTasks): ChildProcess {
  return fork(KEEPER, [JSON.stringify(tasks)], { silent: true, detached: true });
}

/** Ends a keeper. Resolves when its commands have ended and its directory is removed. */
export async function endKeeper(keeper: ChildProcess): Promise<void> {
  if (keeper.exitCode !== null || keeper.signalCode !== null) return;
  const gone = once(keeper, 'exit');
  if (keeper.connected) keeper.disconnect();
  await gone;
}
