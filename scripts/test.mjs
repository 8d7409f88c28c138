/**
 * Runs the tests; the last line says how many passed and failed. `--unit` runs only those that need no server, `--lane redis`
 * those of one lane, `--newer` those with today's servers; `--record` notes in docs/tested-with.json how a whole run ended.
 * Other arguments go on to jest; LOCK_BACKENDS=redis,sqlite narrows the backends.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { argv, execPath } from 'node:process';

import { installE2e, runE2e } from './e2e-step.mjs';
import { execute, root } from './execute.mjs';
import { installMysql, installServers, useNewerServers } from './install-servers.mjs';
import { findSpecs, runJest } from './jest-step.mjs';
import { argumentsOf, laneOf } from './lanes.mjs';
import { TestRun } from './test-run.mjs';
import { record } from './tested-with.mjs';

const nodes = join(root, 'test/nodes');
const [flags, jestArgs] = parsed(argv.slice(2));
const unitOnly = flags.has('--unit');

/** Where specs live that need no server, and all others. */
const WITHOUT_SERVERS = 'clients|core|nest|nestjs-locks|simulation|support|types';
const UNIT = ['--testMatch', '<rootDir>/bench/**/*.spec.ts', `<rootDir>/test/(${WITHOUT_SERVERS})/**/*.spec.ts`];
const OTHERS = ['--testMatch', `<rootDir>/test/!(${WITHOUT_SERVERS})/**/*.spec.ts`];

/** Where no spec measures, one process may run many: it takes two thirds of the time. */
const MANY_A_PROCESS = '--workerIdleMemoryLimit=1GB';

/** Beside the specs on this Node: each of the others takes one processor at most. */
const BESIDE = ['--maxWorkers=1', MANY_A_PROCESS];

/** A contract for each kind of connection, and the core: what differs between versions of Node is timers, streams and contexts. */
const CORE_AND_CONNECTIONS = ['test/core', 'test/backends/.*/(redis-queue|sqlite|etcd)-contract.spec.ts', ...BESIDE];

/** The newest has all that needs no server, too; the one between it and ours, what touches Node itself. */
const ON_NODE = { 'node-22': CORE_AND_CONNECTIONS, 'node-24': ['test/nest/', ...CORE_AND_CONNECTIONS] };

const unit = { name: 'unit tests', run: () => runJest([...BESIDE, ...UNIT]) };

const onOtherNests = ['nest-10', 'nest-11'].map((name) => ({
  name: `tests on ${name}`,
  prepare: () => install(`test/${name}`),
  run: () => runJest(['--config', `jest.${name}.config.mjs`, ...BESIDE]),
}));

/** Those of test/e2e, each with dependencies and a test runner of its own. */
const applications = ['nest-10', 'nest-11', 'nest-12'].map((name) => ({
  name: `tests of the application ${name}`,
  prepare: () => installE2e(name),
  run: () => runE2e(name),
}));

const otherNodes = Object.keys(ON_NODE).map((name) => ({
  name: `tests on ${name}`,
  prepare: () => install('test/nodes'),
  run: () => onNode(name),
}));

let passed = 0;
let failed = 0;
const testRun = new TestRun();
/** Minutes by step, and by lane. */
const minutes = new Map();

if (unitOnly) {
  await runAll([{ name: 'unit tests', run: () => runJest([...jestArgs, MANY_A_PROCESS, ...UNIT]) }]);
} else {
  const ofPackage = jestArgs.length === 0 || findSpecs(jestArgs).some(isOfPackage);
  count(installServers());
  installMysql();
  if (flags.has('--newer')) count(useNewerServers());
  if (ofPackage) for (const prepared of await Promise.all([build(), install('test/nest-11')])) count(prepared);
  // Arguments narrow the tests to those that jest finds by them.
  const narrowed = jestArgs.length > 0;
  const tests = { name: 'tests', run: () => runJest(narrowed ? jestArgs : OTHERS) };
  await Promise.all([runAll([tests]), runAll(narrowed ? [] : [unit, ...onOtherNests, ...applications, ...otherNodes])]);
}
for (const left of await testRun.end()) {
  console.error(`Left behind: ${left}`);
  failed += 1;
}
for (const [name, spent] of minutes) console.log(`${spent.toFixed(1).padStart(6)} min  ${name}`);
if (flags.has('--record')) record({ isNewer: flags.has('--newer'), passed, failed });
process.exitCode = failed === 0 ? 0 : 1;
console.log(`${passed} passed, ${failed} failed`);

/** One after the other. */
async function runAll(steps) {
  for (const { name, prepare, run } of steps) {
    const since = performance.now();
    if (prepare) count(await prepare());
    const counts = await run();
    spend(name, performance.now() - since);
    for (const spec of name === 'tests' ? counts.specs : [])
      spend(`lane ${laneOf(spec.name)}, several at a time`, spec.ms);
    passed += counts.passed;
    failed += counts.failed;
    if (counts.passed + counts.failed > 0 || counts.leftOut) continue;
    console.error(`No ${name} were run`);
    failed += 1;
  }
}

function spend(name, ms) {
  minutes.set(name, (minutes.get(name) ?? 0) + ms / 60_000);
}

function count(prepared) {
  if (!prepared) failed += 1;
}

function parsed(args) {
  const lane = args.indexOf('--lane');
  const expanded = lane < 0 ? args : [...args.slice(0, lane), ...argumentsOf(args[lane + 1]), ...args.slice(lane + 2)];
  return [new Set(expanded.filter(isFlag)), expanded.filter((arg) => !isFlag(arg))];
}

function isFlag(arg) {
  return ['--unit', '--newer', '--record'].includes(arg);
}

function isOfPackage(spec) {
  return spec.includes('/test/package/');
}

/** The package tests need dist as an application gets it, and the sample has to compile. */
async function build() {
  return (
    (await execute(execPath, ['scripts/build.mjs'])) &&
    (await execute(execPath, ['node_modules/@nestjs/cli/bin/nest.js', 'build', 'sample-app']))
  );
}

/** Installs what the folder's package.json asks for. Of Node, it is a package for each version, where there is one for this machine. */
async function install(folder) {
  return existsSync(join(root, folder, 'node_modules')) || execute('npm', ['ci', '--prefix', folder]);
}

async function onNode(name) {
  const node = join(nodes, 'node_modules', name, 'bin/node');
  if (existsSync(node)) return runJest(ON_NODE[name], { node });
  console.error(`Left out: ${name} is no package for this machine`);
  return { passed: 0, failed: 0, leftOut: true };
}
