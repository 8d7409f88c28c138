import * as core from 'nestjs-distributed-lock/core';
import { coreOf, type Mutant } from '../mutants.js';
import { exploreLine } from './explore.js';
import { KEYS } from './kinds.js';
import { OF_THE_LINE, OF_THE_NODES } from './mutants.js';
import { exploreNodes, type NodesRule } from './nodes-model.js';

const mutated = ({ mistake, ...mutant }: Mutant): ReturnType<typeof coreOf> =>
  coreOf({ mistake, ...mutant }, `claims-${mistake.replaceAll(/\W+/gu, '-')}`);

describe('is noticed in the model of a line in a value: a core that', () => {
  it.each(OF_THE_LINE)('$mistake', async (mutant) => {
    const rule = await mutated(mutant);
    expect(KEYS.some(({ kinds, bounds }) => exploreLine(rule, kinds, bounds).wrong !== undefined)).toBe(true);
  });
});

/** Readers between two writers; permits of different weights. */
const LINES = [
  ['', '~s'],
  ['~1-3', '~2-3'],
  ['', '~1-2'],
].map((kinds) => kinds.map((kind) => core.parseClaim(`a${kind}`)));

function wrongLines(rule: NodesRule): readonly unknown[] {
  return LINES.flatMap((claims) => exploreNodes(rule, claims, { longest: 4, arrivals: 5 }).wrong);
}

describe('is noticed in the model of a line of nodes: a core that', () => {
  it.each(OF_THE_NODES)('$mistake', async (mutant) => {
    expect(wrongLines(await mutated(mutant))).not.toEqual([]);
  });

  it('does not give its word', () => {
    expect(wrongLines(core)).toEqual([]);
    expect(wrongLines({ ...core, canAwaitGrant: () => false })).not.toEqual([]);
  });
});
