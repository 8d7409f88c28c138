/** Two processes of one application, as two machines would run them. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const instances = [1, 2].map(() => fork(join(import.meta.dirname, 'instance.ts')));
const said = await Promise.all(instances.map((instance) => once(instance, 'message')));
for (const [index, [message]] of said.entries()) console.log(`instance ${index + 1} ${message}`);

for (const instance of instances) instance.disconnect();
await Promise.all(instances.map((instance) => once(instance, 'exit')));
