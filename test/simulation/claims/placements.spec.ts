import * as core from 'nestjs-distributed-lock/core';
import { coreOf } from '../mutants.js';
import { described } from './described.js';
import { EVERYWHERE, judge } from './judge.js';
import { type LineCore, sightsOfLine } from './line-placement.js';
import { OF_THE_LEASES } from './mutants.js';
import { schedules, seedsOr } from './seeds.js';

/** `test/backends/redis/placements.long.spec.ts` compares more of them, also with the scripts of Redis. */
const SEEDS = seedsOr(2_000);

async function firstWrong(line: LineCore): Promise<string | undefined> {
  for (const schedule of schedules(SEEDS)) {
    const sights = await sightsOfLine(line, schedule);
    const wrong = judge(schedule, sights, EVERYWHERE);
    if (wrong !== undefined) return `${wrong}\n${described(schedule, sights)}`;
  }
  return undefined;
}

describe('a line in a value, beside the rule of a line of nodes', () => {
  it('lets the same ones in, whatever its clients do', async () => {
    expect(await firstWrong(core)).toBeUndefined();
  });

  it.each(OF_THE_LEASES)('is told from one of a core that $mistake', async (mutant) => {
    const mutated = await coreOf(mutant, `leases-${mutant.mistake.replaceAll(' ', '-')}`);
    expect(await firstWrong(mutated)).toContain('seed');
  });
});
