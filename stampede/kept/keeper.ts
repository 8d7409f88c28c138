import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { type KeeperTasks, NOT_FOUND } from './kept.js';

// This process ends its commands and removes its directory as soon as the stampede disconnects. That happens by
// `disconnect()`, or because somebody killed the stampede.

const { directory, commands, stopSignal = 'SIGKILL' } = JSON.parse(process.argv[2] ?? '') as KeeperTasks;
const over = process.connected ? once(process, 'disconnect') : Promise.resolve();
let running: ChildProcess | undefined;
void over.then(() => running?.kill(stopSignal));

const options: SpawnOptions = {
  cwd: directory,
  env: { ...process.env, TMPDIR: directory },
  stdio: ['ignore', 'inherit', 'inherit'],
};
let code: unknown = 0;
for (const [command, ...args] of commands) {
  if (code !== 0 || !process.connected) break;
  running = spawn(command, args, options);
  [code] = await once(running, 'exit').catch(() => [NOT_FOUND]);
}
if (commands.length === 0) await over;
await rm(directory, { recursive: true, force: true, maxRetries: 5 });
process.exit(typeof code === 'number' ? code : 1);
