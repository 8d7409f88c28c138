/**
 * Proves that the quick tier of the tests catches what the full tier catches: README.md beside this file says how. Runs
 * one `--phase`, or all of them, and goes on where an earlier run with the same `--state` ended.
 */
import { join } from 'node:path';
import { env, exit } from 'node:process';
import { parseArgs } from 'node:util';

import { root } from '../execute.mjs';
import { installServers } from '../install-servers.mjs';
import { findMysql } from '../mysql.mjs';
import { cover } from './cover.mjs';
import { draw } from './draw.mjs';
import { judge } from './judge.mjs';
import { report } from './report.mjs';
import { State } from './state.mjs';

const { values } = parseArgs({
  options: {
    phase: { type: 'string' },
    count: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    state: { type: 'string', default: join(root, 'node_modules/.cache/prove-cut') },
    minutes: { type: 'string', default: 'Infinity' },
    workers: { type: 'string', default: '2' },
  },
});
const endAt = performance.now() + Number(values.minutes) * 60_000;
const state = new State(values.state);
const options = { workers: Number(values.workers), isOver: () => performance.now() > endAt };

const phases = {
  draw: () => draw(state, { count: Number(values.count), seed: Number(values.seed) }),
  cover: () => cover(state, 'quick', options),
  quick: () => judge(state, 'quick', options),
  full: async () => (await cover(state, 'full', options)) && judge(state, 'full', options),
  report: () => report(state),
};

// The scratch clones have no servers of their own.
env.LOCK_MYSQLD = findMysql();
if (!installServers()) exit(1);
for (const phase of values.phase ? [values.phase] : Object.keys(phases)) {
  if (!phases[phase]) throw new Error(`--phase is one of ${Object.keys(phases).join(', ')}`);
  if (await phases[phase]()) continue;
  console.log(`The time is over in phase ${phase}: run it again to go on`);
  break;
}
