import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath } from 'node:process';

const jest = join(import.meta.dirname, '../node_modules/jest/bin/jest.js');

const TIME_LIMIT_MS = 30 * 60_000;

/**
 * When its loop has ended, Node 20 sometimes spins for ever in `Environment::CleanupHandles`, after hundreds of reset sockets:
 * so jest ends itself. That our own processes end by themselves is tested with children.
 */
const END = '--forceExit';

/**
 * Runs jest once, with ES modules, and counts. Whatever makes jest fail without a failed test counts as one failure.
 * `node` is the executable to run it with.
 */
export function runJest(args, { env: extraEnv = {}, node = execPath } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'jest-step-'));
  const outputFile = join(directory, 'results.json');
  try {
    const { status } = spawnSync(node, [jest, END, '--json', `--outputFile=${outputFile}`, ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
      // A test that leaks a handle keeps jest alive: a failure, not a hang.
      timeout: TIME_LIMIT_MS,
      killSignal: 'SIGKILL',
      env: { ...env, ...extraEnv, NODE_OPTIONS: nodeOptions() },
    });
    const { passed, failed } = countTests(outputFile);
    return { passed, failed: status === 0 ? failed : Math.max(failed, 1) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The files of the specs that jest would run. */
export function findSpecs(args) {
  const { stdout } = spawnSync(execPath, [jest, '--listTests', ...args], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean);
}

function nodeOptions() {
  return [env.NODE_OPTIONS ?? '', '--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
    .join(' ')
    .trim();
}

/** Of the results that jest, or vitest, wrote as JSON. */
export function countTests(outputFile) {
  try {
    const results = JSON.parse(readFileSync(outputFile, 'utf8'));
    const { numPassedTests = 0, numFailedTests = 0, numRuntimeErrorTestSuites = 0 } = results;
    return { passed: numPassedTests, failed: numFailedTests + numRuntimeErrorTestSuites };
  } catch {
    return { passed: 0, failed: 1 };
  }
}
