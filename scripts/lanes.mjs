/** Divides the tests into lanes by the servers that they need. Each takes a few minutes. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';

/** Lanes of backends that share one. Any other backend has a lane of its own. */
const LANE_OF = { memory: 'core', redlock: 'redis', typeorm: 'sql', postgres: 'sql', mysql: 'sql', sqlite: 'sql' };
/** Beginnings of the names of specs outside of test/backends, by backend. */
const SPEC_BEGINNINGS = { sql: ['hammer', 'mariadb', 'mysql', 'once-per', 'pg-bouncer', 'postgres'] };

/** Patterns of the specs by lane. */
const lanes = new Map([
  ['sample', ['test/(inspector|sample|package|readme)/']],
  ['examples', ['test/examples/']],
]);
for (const folder of readdirSync(join(import.meta.dirname, '../lib/backends'))) {
  const lane = LANE_OF[folder] ?? folder;
  if (lane === 'core') continue;
  const beginnings = [folder, ...(SPEC_BEGINNINGS[folder] ?? [])].join('|');
  lanes.set(lane, [...(lanes.get(lane) ?? []), `test/(backends|faults|servers)/(${beginnings})[./-]`]);
}

/** Returns the arguments of jest for a lane: its specs, or for `core` the specs of all other lanes to ignore. */
export function jestArgumentsOf(lane) {
  if (lane === 'core') {
    return [...listIgnored(), ...[...lanes.values()].flat()].map((pattern) => `--testPathIgnorePatterns=${pattern}`);
  }
  const patterns = lanes.get(lane);
  if (!patterns) throw new Error(`--lane is one of core, ${[...lanes.keys()].join(', ')}`);
  return patterns;
}

/** Returns patterns of the specs that are never run, or not in this tier: long specs have a name that says so. */
export function listIgnored() {
  return ['/node_modules/', ...(env.LOCK_TIER === 'quick' ? ['\\.long\\.spec\\.ts$'] : [])];
}

/** Returns the lane of a spec. */
export function laneOf(spec) {
  const [lane = 'core'] =
    [...lanes].find(([, patterns]) => patterns.some((each) => new RegExp(each, 'u').test(spec))) ?? [];
  return lane;
}
