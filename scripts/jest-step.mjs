import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { env, execPath } from 'node:process';

import { execute, root } from './execute.mjs';

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
    const counts = countTests(file);
    return { ...counts, failed: ok ? counts.failed : Math.max(counts.failed, 1) };
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

/** Returns the numbers of tests, the names of the failed ones and the times of specs from the JSON of jest or vitest. */
function countTests(file) {
  try {
    const results = JSON.parse(readFileSync(file, 'utf8'));
    const { numPassedTests = 0, numFailedTests = 0, numRuntimeErrorTestSuites = 0, testResults = [] } = results;
    const specs = testResults.map(({ name, startTime, endTime }) => ({ name, ms: endTime - startTime }));
    const failures = testResults.flatMap(listFailures);
    return { passed: numPassedTests, failed: numFailedTests + numRuntimeErrorTestSuites, failures, specs };
  } catch {
    return { passed: 0, failed: 1, failures: [], specs: [] };
  }
}

/** Returns the names of the failed tests of a spec, or that of the spec where it failed as a whole. */
function listFailures({ name, status, assertionResults = [] }) {
  const spec = relative(root, name);
  const failures = assertionResults
    .filter((test) => test.status === 'failed')
    .map((test) => `${spec}: ${test.fullName}`);
  return failures.length === 0 && status === 'failed' ? [spec] : failures;
}
