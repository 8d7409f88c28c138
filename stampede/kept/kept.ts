import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const KEEPER = join(import.meta.dirname, 'keeper.js');

/** The tasks of a keeper. */
export interface Kept {
  /** Removed at the end. */
  readonly directory: string;
  /** Run one after the other while they succeed; the last one is a server. */
  readonly commands: readonly (readonly [command: string, ...args: string[]])[];
  readonly stopSignal?: NodeJS.Signals;
}

/** With this a keeper ends when there is no such command, as shells do. */
export const NOT_FOUND = 127;

/** Starts a keeper. It has a session of its own, where no Ctrl-C reaches it: we say when it ends. */
export function keep(kept: Kept): ChildProcess {
  return fork(KEEPER, [JSON.stringify(kept)], { silent: true, detached: true });
}

/** Resolves when nothing is left of what it kept. */
export async function letGo(keeper: ChildProcess): Promise<void> {
  if (keeper.exitCode !== null || keeper.signalCode !== null) return;
  const gone = once(keeper, 'exit');
  if (keeper.connected) keeper.disconnect();
  await gone;
}
