/** Runs the benchmark with the arguments given; installs the servers and the peers where they are missing. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { argv, execPath } from 'node:process';

import { installServers } from './install-servers.mjs';

const root = join(import.meta.dirname, '..');

process.exitCode = installServers() && installPeers() ? bench() : 1;

function installPeers() {
  return existsSync(join(root, 'bench/node_modules')) || run('npm', ['ci', '--prefix', 'bench']) === 0;
}

function bench() {
  return run(execPath, ['--import', './test/support/ts-register.mjs', 'bench/main.ts', ...argv.slice(2)]);
}

function run(command, args) {
  return spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status ?? 1;
}
