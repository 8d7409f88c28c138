/** `npm run example <name>`: runs examples/<name>/main.ts, with a Redis of its own unless REDIS_URL names one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { argv, env, execPath } from 'node:process';
import { RedisServer } from '../test/servers/redis-server.js';

const WITH_REDIS = ['bullmq', 'cron', 'leader', 'plain-node'];

const name = argv[2] ?? '';
const main = join(import.meta.dirname, name, 'main.ts');
if (name !== '' && existsSync(main)) await run();
else {
  const folders = readdirSync(import.meta.dirname).filter((folder) => !folder.includes('.'));
  console.error(`npm run example <name>, with one of ${folders.join(', ')}`);
  process.exitCode = 2;
}

async function run(): Promise<void> {
  const server = WITH_REDIS.includes(name) && env['REDIS_URL'] === undefined ? await RedisServer.start() : undefined;
  try {
    const register = join(import.meta.dirname, '../test/support/ts-register.mjs');
    const environment = server ? { ...env, REDIS_URL: server.url } : env;
    const child = spawn(execPath, ['--import', register, main], { stdio: 'inherit', env: environment });
    const [code] = await once(child, 'exit');
    process.exitCode = typeof code === 'number' ? code : 1;
  } finally {
    await server?.stop();
  }
}
