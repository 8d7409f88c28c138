import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { env, execPath } from 'node:process';
import { promisify } from 'node:util';

const home = import.meta.dirname;

/** Generates the clients of Prisma, into the folder of the packages. */
export default async function generateClients() {
  await Promise.all(['postgres', 'mysql'].map(generateClient));
}

/** Prisma would download the engine of its migrations first, which no client needs: any program passes for it. */
function generateClient(database) {
  const prisma = join(home, 'node_modules/prisma/build/index.js');
  return promisify(execFile)(execPath, [prisma, 'generate', '--no-hints', '--schema', `prisma/${database}.prisma`], {
    cwd: home,
    env: { ...env, NODE_OPTIONS: '', CHECKPOINT_DISABLE: '1', PRISMA_SCHEMA_ENGINE_BINARY: execPath },
  });
}
