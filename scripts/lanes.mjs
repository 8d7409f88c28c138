/** Parts of the tests by the servers that they need, each for a few minutes. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Backends that share a lane with others, and specs elsewhere that go with a lane by how their names begin. */
const LANE_OF = { memory: 'core', redlock: 'redis', typeorm: 'sql' };
const BEGINNINGS = { typeorm: ['hammer', 'mariadb', 'mysql', 'once-per', 'pg-bouncer', 'postgres'] };

/** The patterns of each lane's specs. The folder of a backend is a lane, unless it shares one. */
const lanes = new Map([
  ['sample', ['test/(inspector|sample|package|readme)/']],
  ['examples', ['test/examples/']],
]);
for (const folder of readdirSync(join(import.meta.dirname, '../lib/backends'))) {
  const lane = LANE_OF[folder] ?? folder;
  if (lane === 'core') continue;
  const beginnings = [folder, ...(BEGINNINGS[folder] ?? [])].join('|');
  lanes.set(lane, [...(lanes.get(lane) ?? []), `test/(backends|faults|servers)/(${beginnings})[./-]`]);
}

/** The arguments of jest for a lane: its specs; for `core`, those of all other lanes, to ignore. */
export function argumentsOf(lane) {
  if (lane === 'core') {
    return ['/node_modules/', ...[...lanes.values()].flat()].map((pattern) => `--testPathIgnorePatterns=${pattern}`);
  }
  const patterns = lanes.get(lane);
  if (!patterns) throw new Error(`--lane is one of core, ${[...lanes.keys()].join(', ')}`);
  return patterns;
}

/** The lane of a spec. */
export function laneOf(spec) {
  const [lane = 'core'] =
    [...lanes].find(([, patterns]) => patterns.some((each) => new RegExp(each, 'u').test(spec))) ?? [];
  return lane;
}
