import * as core from 'nestjs-distributed-lock/core';
import { coreOf } from '../mutants.js';
import { wrongUnderContention } from './contended-line.js';
import { OF_CONTENTION } from './mutants.js';
import { seedsOr } from './seeds.js';

/** A seed repeats what is lost. The pauses of those who met a change are random, and so is the order of requests then. */
const SEEDS = seedsOr(500);

async function firstWrong(line: typeof core): Promise<string[]> {
  for (let seed = 0; seed < SEEDS; seed += 1) {
    const wrong = await wrongUnderContention(line, seed);
    if (wrong.length > 0) return [`seed ${seed}`, ...wrong];
  }
  return [];
}

describe('a line that several processes change at once, with requests and answers that are lost', () => {
  it('lets in who fits, once, and nothing is left', async () => {
    expect(await firstWrong(core)).toEqual([]);
  });

  it.each(OF_CONTENTION)('is told from that of a core that $mistake', async (mutant) => {
    const mutated = await coreOf(mutant, `contention-${mutant.mistake.replaceAll(' ', '-')}`);
    expect(await firstWrong(mutated)).not.toEqual([]);
  });
});
