/** Runs what needs no server, side by side: format, lint and types, and the unit tests of the quick tier. */
import { execPath } from 'node:process';

import { execute } from './execute.mjs';

const stdio = ['ignore', 'inherit', 'inherit'];
const succeeded = await Promise.all([
  execute('npm', ['run', '--silent', 'static'], { stdio }),
  execute(execPath, ['scripts/test.mjs', '--unit'], { stdio }),
]);
process.exitCode = succeeded.every(Boolean) ? 0 : 1;
