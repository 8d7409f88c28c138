import * as core from 'nestjs-distributed-lock/core';
import { type Claim, parseClaim, findObstacle } from 'nestjs-distributed-lock/core';
import { exploreNodes } from '../simulation/claims/nodes-model.js';

const claims = (...suffixes: string[]): Claim[] => suffixes.map((suffix) => parseClaim(`owner${suffix}`));

describe('a line of nodes', () => {
  it.each([
    ['mutexes', claims(''), 4, 6, 50],
    ['readers and writers', claims('', '~s'), 4, 6, 500],
    ['two permits', claims('~1-2'), 5, 7, 100],
    ['weighted permits', claims('~1-3', '~2-3'), 5, 6, 1_000],
    ['permits and those who drain them', claims('', '~1-2'), 5, 6, 1_000],
    ['readers, writers and permits', claims('', '~s', '~1-2'), 4, 5, 1_000],
    ['a limit that grows', claims('~1-2', '~1-3', '~2-3'), 5, 5, 1_000],
    ['limits far apart', claims('~4-4', '~1-6', '~2-3'), 5, 5, 1_000],
  ])('lets nobody who fits sleep, and no more in than fit: %s', (_name, kinds, longest, arrivals, atLeast) => {
    const { states, wrong } = exploreNodes(core, kinds, { longest, arrivals });
    expect(wrong).toEqual([]);
    expect(states).toBeGreaterThan(atLeast);
  });

  it('lets a waiter watch one event', () => {
    const [all, reader, one, two] = claims('', '~s', '~1-3', '~2-3') as [Claim, Claim, Claim, Claim];
    expect(findObstacle(reader, [reader, reader])).toBeUndefined();
    expect(findObstacle(all, [reader, reader])).toEqual({ until: 'end', at: 1 });
    expect(findObstacle(reader, [all, reader, all, reader, one])).toEqual({ until: 'end', at: 2 });
    expect(findObstacle(one, [one, one, one])).toEqual({ until: 'departure' });
    expect(findObstacle(one, [one, one, one, one])).toEqual({ until: 'grant', at: 3 });
    expect(findObstacle(two, [one, two])).toEqual({ until: 'end', at: 1 });
    expect(findObstacle(one, [all, one, one])).toEqual({ until: 'grant', at: 2 });
  });
});
