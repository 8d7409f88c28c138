/** Runs specs of a scratch clone by jest, apart from all that an earlier run has left. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env, execPath } from 'node:process';

import { root } from '../execute.mjs';
import { TestRun } from '../test-run.mjs';

const JEST = join(root, 'node_modules/jest/bin/jest.js');
const NODE_OPTIONS = '--experimental-vm-modules --disable-warning=ExperimentalWarning';

/** Returns the specs of a tier, as paths in the clone. */
export function listSpecs(clone, tier) {
  const options = { cwd: clone, encoding: 'utf8', env: { ...env, LOCK_TIER: tier } };
  const { stdout } = spawnSync(execPath, [JEST, '--listTests'], options);
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((path) => path.slice(clone.length + 1));
}

/**
 * Runs specs, and returns a result for each that has ended: its name, its milliseconds and its failed tests. After
 * `limitMs` it is killed. `variables` are added to the environment.
 */
export async function runSpecs({ clone, specs, tier, variables = {}, workers, limitMs, directory }) {
  const results = join(directory, 'results.jsonl');
  writeFileSync(results, '');
  const log = openSync(join(directory, 'jest.log'), 'w');
  const { TMPDIR } = env;
  const testRun = new TestRun();
  const own = { LOCK_TIER: tier, NODE_OPTIONS, PROVE_CUT_RESULTS: results, ...variables };
  const files = ['spec-environment.mjs', 'spec-reporter.mjs'].map((name) => join(import.meta.dirname, name));
  const options = [`--env=${files[0]}`, `--reporters=${files[1]}`, `--maxWorkers=${workers}`, '--runTestsByPath'];
  const jest = spawn(execPath, [JEST, ...options, ...specs], {
    cwd: clone,
    env: { ...env, ...own },
    stdio: ['ignore', log, log],
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
  const [, signal] = await once(jest, 'exit');
  closeSync(log);
  // Mutants leave processes and files behind.
  await testRun.end();
  if (TMPDIR === undefined) delete env.TMPDIR;
  else env.TMPDIR = TMPDIR;
  return {
    isKilled: signal !== null,
    results: readFileSync(results, 'utf8').split('\n').filter(Boolean).map(JSON.parse),
  };
}
