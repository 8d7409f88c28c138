import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath } from 'node:process';

import { execute, root } from './execute.mjs';
import { runAndCount } from './jest-step.mjs';

const TIME_LIMIT_MS = 5 * 60_000;

/** Arguments of Node that run the tests of each application of test/e2e and write their results to a file. */
const RUNNERS = {
  'nest-10': jestArguments,
  'nest-11': jestArguments,
  'nest-12': (file) => [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${file}`,
  ],
};

function jestArguments(file) {
  return ['node_modules/jest/bin/jest.js', '--json', `--outputFile=${file}`];
}

/**
 * Installs the dependencies of an application, and unpacks the package into it as npm would. Returns whether that
 * succeeded.
 */
export async function installE2e(name) {
  const home = join(root, 'test/e2e', name);
  if (
    !existsSync(join(home, 'node_modules')) &&
    !(await execute('npm', ['ci', '--no-audit', '--no-fund', '--prefix', home]))
  )
    return false;
  const directory = mkdtempSync(join(tmpdir(), 'e2e-package-'));
  try {
    const library = join(home, 'node_modules/nestjs-distributed-lock');
    rmSync(library, { recursive: true, force: true });
    mkdirSync(library, { recursive: true });
    const pack = `npm pack --ignore-scripts --silent --pack-destination '${directory}'`;
    return await execute('sh', ['-c', `${pack} && tar -xzf '${directory}'/*.tgz -C '${library}' --strip-components=1`]);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Runs the tests of an application against real servers, and counts them. */
export function runE2e(name) {
  const register = join(root, 'test/support/ts-register.mjs');
  const withServers = join(root, 'test/e2e/with-servers.ts');
  return runAndCount((file) => [execPath, ['--import', register, withServers, execPath, ...RUNNERS[name](file)]], {
    cwd: join(root, 'test/e2e', name),
    timeout: TIME_LIMIT_MS,
    env: { ...env, NODE_OPTIONS: '' },
  });
}
