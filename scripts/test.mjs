/**
 * Runs the tests: those of the quick tier, or with `--all` each one. The last line says how many passed and failed.
 * - `--unit` runs the tests that need no server, and `--lane redis` those of one lane.
 * - `--newer` uses the newest servers.
 * - LOCK_BACKENDS=redis,sqlite leaves out all other backends.
 *
 * Other arguments go to jest, which runs all tests of the specs that it finds by them. A whole run with `--all` writes
 * its result to docs/tested-with.json.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { argv, env, execPath } from 'node:process';

import { installE2e, runE2e } from './e2e-step.mjs';
import { execute, root } from './execute.mjs';
import { installMysql, installServers, useNewerServers } from './install-servers.mjs';
import { findSpecs, runJest } from './jest-step.mjs';
import { jestArgumentsOf, laneOf } from './lanes.mjs';
import { TestRun } from './test-run.mjs';
import { recordRun } from './tested-with.mjs';

const nodes = join(root, 'test/nodes');
const { flags, lane, words } = parseArguments(argv.slice(2));
const unitOnly = flags.has('--unit');
// Who names a spec wants all of it.
const isQuick = !flags.has('--all') && words.length === 0;
// Jest's configurations and test/support/tier.ts read it.
env.LOCK_TIER = isQuick ? 'quick' : 'full';
const jestArgs = [...(lane === undefined ? [] : jestArgumentsOf(lane)), ...words];

/** Folders of the specs that need no server. */
const FOLDERS_WITHOUT_SERVERS = 'clients|core|nest|nestjs-locks|simulation|support|types';
const UNIT_SPECS = [
  '--testMatch',
  '<rootDir>/bench/**/*.spec.ts',
  `<rootDir>/test/(${FOLDERS_WITHOUT_SERVERS})/**/*.spec.ts`,
];
const OTHER_SPECS = ['--testMatch', `<rootDir>/test/!(${FOLDERS_WITHOUT_SERVERS}|orms)/**/*.spec.ts`];

/** Argument that runs many specs in one process, in two thirds of the time. Specs that measure cannot share one. */
const SHARED_PROCESSES = '--workerIdleMemoryLimit=1GB';

/** Part of the outcomes of a whole run that need not be judged, where the processor is withheld. */
const MOST_NOT_JUDGED = 0.01;

/** Arguments of steps that run beside the main one: each takes one processor at most. */
const SINGLE_WORKER = ['--maxWorkers=1', SHARED_PROCESSES];

/** Specs of the core and of each kind of connection: versions of Node differ in timers, streams and contexts. */
const CORE_AND_CONNECTIONS = [
  'test/core',
  'test/backends/.*/(redis-queue|sqlite|sqlite-driver|etcd)-contract.spec.ts',
  ...SINGLE_WORKER,
];

/** Specs for other versions of Node. The newest also runs those of the Nest side. */
const SPECS_ON_NODE = isQuick
  ? { 'node-24': ['test/core', ...SINGLE_WORKER] }
  : { 'node-22': CORE_AND_CONNECTIONS, 'node-24': ['test/nest/', ...CORE_AND_CONNECTIONS] };

const unitStep = { name: 'unit tests', run: () => runJest([...SINGLE_WORKER, ...UNIT_SPECS]) };

const otherNestSteps = (isQuick ? ['nest-10'] : ['nest-10', 'nest-11']).map((name) => ({
  name: `tests on ${name}`,
  prepare: () => install(`test/${name}`),
  run: () => runJest(['--config', `jest.${name}.config.mjs`, ...SINGLE_WORKER]),
}));

const ormStep = {
  name: 'tests of the ORMs',
  prepare: () => install('test/orms'),
  run: () => runJest(['--config', 'jest.orms.config.mjs', ...SINGLE_WORKER]),
};

/** Steps for the applications of test/e2e. Each has its own dependencies and test runner. */
const applications = (isQuick ? ['nest-12'] : ['nest-10', 'nest-11', 'nest-12']).map((name) => ({
  name: `tests of the application ${name}`,
  prepare: () => installE2e(name),
  run: () => runE2e(name),
}));

const otherNodeSteps = Object.keys(SPECS_ON_NODE).map((name) => ({
  name: `tests on ${name}`,
  prepare: () => install('test/nodes'),
  run: () => runOnNode(name),
}));

let passed = 0;
let failed = 0;
/** Names of the failed tests, after the step that ran them. */
const failures = [];
const testRun = new TestRun();
/** Minutes of each step and of each lane. */
const minutes = new Map();

if (unitOnly) {
  await runAll([{ ...unitStep, run: () => runJest([...jestArgs, SHARED_PROCESSES, ...UNIT_SPECS]) }]);
} else {
  const needsPackage = jestArgs.length === 0 || findSpecs(jestArgs).some(isPackageSpec);
  countPreparation(installServers());
  installMysql();
  if (flags.has('--newer')) countPreparation(useNewerServers());
  if (needsPackage)
    for (const prepared of await Promise.all([build(), install('test/nest-11')])) countPreparation(prepared);
  // With arguments only the matching tests run.
  const narrowed = jestArgs.length > 0;
  const tests = { name: 'tests', run: () => runJest(narrowed ? jestArgs : OTHER_SPECS) };
  await Promise.all([
    runAll([tests]),
    runAll(narrowed ? [] : [unitStep, ...otherNestSteps, ormStep, ...applications, ...otherNodeSteps]),
  ]);
}
const notJudged = testRun.readNotJudged();
for (const left of await testRun.end()) {
  console.error(`Left behind: ${left}`);
  failed += 1;
}
for (const failure of failures) console.error(`Failed in ${failure}`);
for (const outcome of notJudged) console.error(`Not judged: ${outcome}`);
if (flags.has('--all') && notJudged.length > (passed + failed) * MOST_NOT_JUDGED) {
  console.error('The machine was too busy: more than a hundredth of the outcomes could not be judged');
  failed += 1;
}
for (const [name, spent] of minutes) console.log(`${spent.toFixed(1).padStart(6)} min  ${name}`);
if (flags.has('--all') && !unitOnly && jestArgs.length === 0 && !env.LOCK_BACKENDS)
  recordRun({ isNewer: flags.has('--newer'), passed, failed, notJudged: notJudged.length });
process.exitCode = failed === 0 ? 0 : 1;
if (notJudged.length > 0) console.log(`${notJudged.length} not judged`);
console.log(`${passed} passed, ${failed} failed`);

/** Runs steps one after the other. */
async function runAll(steps) {
  for (const { name, prepare, run } of steps) {
    const since = performance.now();
    if (prepare) countPreparation(await prepare());
    const counts = await run();
    addMinutes(name, performance.now() - since);
    for (const spec of name === 'tests' ? counts.specs : [])
      addMinutes(`lane ${laneOf(spec.name)}, several at a time`, spec.ms);
    passed += counts.passed;
    failed += counts.failed;
    failures.push(...(counts.failures ?? []).map((failure) => `${name}: ${failure}`));
    if (counts.passed + counts.failed > 0 || counts.leftOut) continue;
    console.error(`No ${name} were run`);
    failed += 1;
  }
}

function addMinutes(name, ms) {
  minutes.set(name, (minutes.get(name) ?? 0) + ms / 60_000);
}

function countPreparation(prepared) {
  if (!prepared) failed += 1;
}

function parseArguments(args) {
  const at = args.indexOf('--lane');
  const others = at < 0 ? args : args.toSpliced(at, 2);
  return {
    lane: at < 0 ? undefined : args[at + 1],
    flags: new Set(others.filter(isFlag)),
    words: others.filter((arg) => !isFlag(arg)),
  };
}

function isFlag(arg) {
  return ['--unit', '--newer', '--all'].includes(arg);
}

function isPackageSpec(spec) {
  return spec.includes('/test/package/');
}

/** Builds dist for the tests of the package, and compiles the sample. */
async function build() {
  return (
    (await execute(execPath, ['scripts/build.mjs'])) &&
    (await execute(execPath, ['node_modules/@nestjs/cli/bin/nest.js', 'build', 'sample-app']))
  );
}

/**
 * Installs the dependencies of a folder. In test/nodes they are versions of Node, where npm has them for this machine.
 */
async function install(folder) {
  return (
    existsSync(join(root, folder, 'node_modules')) ||
    execute('npm', ['ci', '--no-audit', '--no-fund', '--prefix', folder])
  );
}

async function runOnNode(name) {
  const node = join(nodes, 'node_modules', name, 'bin/node');
  if (existsSync(node)) return runJest(SPECS_ON_NODE[name], { node });
  console.error(`Left out: ${name} is no package for this machine`);
  return { passed: 0, failed: 0, leftOut: true };
}
