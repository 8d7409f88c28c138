import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath } from 'node:process';

import { execute } from './execute.mjs';

const jest = join(import.meta.dirname, '../node_modules/jest/bin/jest.js');

/** On a busy machine, the longest step takes an hour. */
const TIME_LIMIT_MS = 150 * 60_000;

/** Runs jest once, with ES modules, and counts the tests. `node` is the executable that runs it. */
export function runJest(args, { node = execPath } = {}) {
  return runAndCount((file) => [node, [jest, '--json', `--outputFile=${file}`, ...args]], {
    // A test that leaks a handle keeps jest alive. The time limit makes that a failure.
    timeout: TIME_LIMIT_MS,
    env: { ...env, NODE_OPTIONS: nodeOptions() },
  });
}

/**
 * Runs a command that writes its results to a file as jest does. A command that fails without a failed test counts as
 * one.
 */
export async function runAndCount(commandFor, options) {
  const directory = mkdtempSync(join(tmpdir(), 'test-step-'));
  const file = join(directory, 'results.json');
  try {
    const ok = await execute(...commandFor(file), { stdio: ['ignore', 'inherit', 'inherit'], ...options });
    const { passed, failed, specs } = countTests(file);
    return { passed, failed: ok ? failed : Math.max(failed, 1), specs };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Returns the files of the specs that jest would run. */
export function findSpecs(args) {
  const { stdout } = spawnSync(execPath, [jest, '--listTests', ...args], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean);
}

function nodeOptions() {
  return [env.NODE_OPTIONS ?? '', '--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
    .join(' ')
    .trim();
}

/** Returns the numbers of tests and the times of specs from the JSON file of jest or vitest. */
function countTests(file) {
  try {
    const results = JSON.parse(readFileSync(file, 'utf8'));
    const { numPassedTests = 0, numFailedTests = 0, numRuntimeErrorTestSuites = 0, testResults = [] } = results;
    const specs = testResults.map(({ name, startTime, endTime }) => ({ name, ms: endTime - startTime }));
    return { passed: numPassedTests, failed: numFailedTests + numRuntimeErrorTestSuites, specs };
  } catch {
    return { passed: 0, failed: 1, specs: [] };
  }
}
