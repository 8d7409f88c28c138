import type { Bounds, Kind } from './line-model.js';

const ALL = 2 ** 31 - 1;

const ALONE: Kind = { suffix: '', permits: ALL, limit: ALL };
const READER: Kind = { suffix: '~s', permits: 1, limit: ALL };
const permits = (wanted: number, limit: number): Kind => ({ suffix: `~${wanted}-${limit}`, permits: wanted, limit });

/** Keys whose clients want this. */
export interface KeyModel {
  readonly name: string;
  readonly kinds: readonly Kind[];
  readonly bounds: Bounds;
  readonly atLeast: number;
}

export const KEYS: readonly KeyModel[] = [
  key('a mutex', [ALONE], { longest: 4, arrivals: 6, ticks: 4 }, 100),
  key('readers and writers', [ALONE, READER], { longest: 4, arrivals: 4, ticks: 3 }, 1_000),
  key(
    'weights of three permits',
    [1, 2, 3].map((wanted) => permits(wanted, 3)),
    { longest: 4, arrivals: 4, ticks: 2 },
    1_000,
  ),
  key(
    'permits and those who want all',
    [ALONE, permits(1, 2), permits(2, 2)],
    { longest: 4, arrivals: 4, ticks: 2 },
    1_000,
  ),
  key('all modes', [ALONE, READER, permits(1, 2)], { longest: 4, arrivals: 4, ticks: 2 }, 1_000),
  key(
    'a limit that grows',
    [permits(1, 2), permits(1, 3), permits(2, 3)],
    { longest: 4, arrivals: 4, ticks: 2 },
    1_000,
  ),
];

function key(name: string, kinds: readonly Kind[], bounds: Bounds, atLeast: number): KeyModel {
  return { name, kinds, bounds, atLeast };
}
