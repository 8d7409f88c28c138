/** Two processes of one application, as two machines would run them. The one that leads is stopped, then the other one. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const standing = new Set([1, 2].map(start));
while (standing.size > 0) {
  const elected = await Promise.race(Array.from(standing, ({ leads }) => leads));
  standing.delete(elected);
  elected.process.send('stop');
  await once(elected.process, 'exit');
}

interface Instance {
  readonly process: ChildProcess;
  readonly leads: Promise<Instance>;
}

function start(number: number): Instance {
  const process = fork(join(import.meta.dirname, 'instance.ts'));
  process.on('message', (said) => console.log(`instance ${number}`, said));
  const leads: Promise<Instance> = once(process, 'message').then(() => instance);
  const instance = { process, leads };
  return instance;
}
