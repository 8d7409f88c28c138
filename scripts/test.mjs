/**
 * Runs the tests; the last line says how many passed and failed. `--unit` runs only those that need no server, `--lane redis`
 * those of one lane. Other arguments go on to jest; LOCK_BACKENDS=redis,sqlite narrows the backends.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { argv, execPath } from 'node:process';

import { installE2e, runE2e } from './e2e-step.mjs';
import { installServers } from './install-servers.mjs';
import { findSpecs, runJest } from './jest-step.mjs';
import { argumentsOf } from './lanes.mjs';

const root = join(import.meta.dirname, '..');
const nodes = join(root, 'test/nodes');
const [unitOnly, jestArgs] = parsed(argv.slice(2));

/** Where specs live that need no server. */
const UNIT = [
  '<rootDir>/bench/**/*.spec.ts',
  '<rootDir>/test/{clients,core,nest,simulation,support,types}/**/*.spec.ts',
];

/** What other versions of Node run: all that needs no server, and a contract for each kind of connection. */
const ON_EACH_NODE = ['test/core', 'test/nest/', 'test/backends/(redis-queue|sqlite|etcd).spec.ts'];

/** Those of test/e2e, each with dependencies and a test runner of its own. */
const APPLICATIONS = ['nest-11', 'nest-12'];

/** What must be there before the first test; each says whether it is. */
const preparations = unitOnly
  ? []
  : jestArgs.length > 0
    ? [installServers, ...(findSpecs(jestArgs).some(isOfPackage) ? [build, installNest11] : [])]
    : [installServers, build, installNest11, installNodes, ...APPLICATIONS.map((name) => () => installE2e(name))];

/** What is run, one after the other; each returns its counts. */
const steps = () =>
  unitOnly
    ? [{ name: 'unit tests', run: () => runJest([...jestArgs, '--testMatch', ...UNIT]) }]
    : [
        { name: 'tests', run: () => runJest(jestArgs) },
        // Whoever narrows the tests by arguments of jest asks for those only.
        ...(jestArgs.length > 0
          ? []
          : [
              { name: 'tests on Nest 11', run: () => runJest(['--config', 'jest.nest-11.config.mjs']) },
              ...APPLICATIONS.map((name) => ({ name: `tests of the application ${name}`, run: () => runE2e(name) })),
              ...otherNodes(),
            ]),
      ];

let passed = 0;
let failed = preparations.filter((prepare) => !prepare()).length;
for (const { name, run } of steps()) {
  const counts = run();
  passed += counts.passed;
  failed += counts.failed;
  if (counts.passed + counts.failed === 0) {
    console.error(`No ${name} were run`);
    failed += 1;
  }
}
process.exitCode = failed === 0 ? 0 : 1;
console.log(`${passed} passed, ${failed} failed`);

function parsed(args) {
  const lane = args.indexOf('--lane');
  const expanded = lane < 0 ? args : [...args.slice(0, lane), ...argumentsOf(args[lane + 1]), ...args.slice(lane + 2)];
  return [expanded.includes('--unit'), expanded.filter((arg) => arg !== '--unit')];
}

function isOfPackage(spec) {
  return spec.includes('/test/package/');
}

/** The package tests need dist as an application gets it, and the sample has to compile. */
function build() {
  return (
    execute(execPath, ['scripts/build.mjs']) &&
    execute(execPath, ['node_modules/@nestjs/cli/bin/nest.js', 'build', 'sample-app'])
  );
}

function installNest11() {
  return existsSync(join(root, 'test/nest-11/node_modules')) || execute('npm', ['ci', '--prefix', 'test/nest-11']);
}

/** A package for each version, where there is one for this machine. */
function installNodes() {
  return existsSync(join(nodes, 'node_modules')) || execute('npm', ['ci', '--prefix', nodes]);
}

function otherNodes() {
  return ['node-22', 'node-24']
    .map((name) => ({ name, node: join(nodes, 'node_modules', name, 'bin/node') }))
    .filter(({ name, node }) => existsSync(node) || console.error(`Left out: ${name} is no package for this machine`))
    .map(({ name, node }) => ({ name: `tests on ${name}`, run: () => runJest(ON_EACH_NODE, { node }) }));
}

function execute(command, args) {
  return spawnSync(command, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0;
}
