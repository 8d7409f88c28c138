/** Runs the benchmark with the arguments of the command line. Installs missing servers and packages first. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { argv, execPath } from 'node:process';

import { installServers } from './install-servers.mjs';

const root = join(import.meta.dirname, '..');

process.exitCode = installServers() && installPackages() ? runBenchmark() : 1;

function installPackages() {
  return (
    existsSync(join(root, 'bench/node_modules')) ||
    run('npm', ['ci', '--no-audit', '--no-fund', '--prefix', 'bench']) === 0
  );
}

function runBenchmark() {
  return run(execPath, ['--import', './test/support/ts-register.mjs', 'bench/main.ts', ...argv.slice(2)]);
}

function run(command, args) {
  return spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status ?? 1;
}
