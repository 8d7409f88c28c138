/** Runs what needs no server, side by side: format, lint and types, and the unit tests, with some of the simulated worlds. */
import { env, execPath } from 'node:process';

import { execute } from './execute.mjs';

const stdio = ['ignore', 'inherit', 'inherit'];
env.SIMULATION_SEEDS ??= '100';
env.PLACEMENT_SEEDS ??= '1000';
const succeeded = await Promise.all([
  execute('npm', ['run', '--silent', 'static'], { stdio }),
  // Mutants show that the simulation finds mistakes: the whole run has them.
  execute(
    execPath,
    ['scripts/test.mjs', '--unit', '--testPathIgnorePatterns=/node_modules/', '--testPathIgnorePatterns=mutants'],
    { stdio },
  ),
]);
process.exitCode = succeeded.every(Boolean) ? 0 : 1;
