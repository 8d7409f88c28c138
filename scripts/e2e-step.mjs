import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath } from 'node:process';

import { countTests } from './jest-step.mjs';

const root = join(import.meta.dirname, '..');
const TIME_LIMIT_MS = 5 * 60_000;

/** How the application in each folder of test/e2e runs its tests, and writes what came of them to a file. */
const RUNNERS = {
  'nest-11': (file) => ['node_modules/jest/bin/jest.js', '--json', `--outputFile=${file}`],
  'nest-12': (file) => [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${file}`,
  ],
};

/** Installs what the application depends on, and unpacks the package into it as npm would. Says whether it could. */
export function installE2e(name) {
  const home = join(root, 'test/e2e', name);
  if (!existsSync(join(home, 'node_modules')) && !succeeds('npm', ['ci', '--prefix', home])) return false;
  const directory = mkdtempSync(join(tmpdir(), 'e2e-package-'));
  try {
    const library = join(home, 'node_modules/nestjs-distributed-lock');
    rmSync(library, { recursive: true, force: true });
    mkdirSync(library, { recursive: true });
    const pack = `npm pack --ignore-scripts --silent --pack-destination '${directory}'`;
    return succeeds('sh', ['-c', `${pack} && tar -xzf '${directory}'/*.tgz -C '${library}' --strip-components=1`]);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Runs the application's tests against real servers, and counts. */
export function runE2e(name) {
  const directory = mkdtempSync(join(tmpdir(), 'e2e-step-'));
  const outputFile = join(directory, 'results.json');
  const register = join(root, 'test/support/ts-register.mjs');
  const withServers = join(root, 'test/e2e/with-servers.ts');
  try {
    const { status } = spawnSync(
      execPath,
      ['--import', register, withServers, execPath, ...RUNNERS[name](outputFile)],
      {
        cwd: join(root, 'test/e2e', name),
        stdio: ['ignore', 'inherit', 'inherit'],
        timeout: TIME_LIMIT_MS,
        killSignal: 'SIGKILL',
        env: { ...env, NODE_OPTIONS: '' },
      },
    );
    const { passed, failed } = countTests(outputFile);
    return { passed, failed: status === 0 ? failed : Math.max(failed, 1) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function succeeds(command, args) {
  return spawnSync(command, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0;
}
