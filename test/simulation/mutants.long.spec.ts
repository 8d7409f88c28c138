import * as core from 'nestjs-distributed-lock/core';
import { coreOf, MUTANTS } from './mutants.js';
import { type Scenario, scenarioOf } from './scenario.js';
import { shortest } from './shortest.js';
import { type CoreUnderTest, simulate } from './simulation.js';

const FOUND_WITHIN = 2_000;

describe('is noticed within two thousand worlds: a core that', () => {
  it.each(MUTANTS)(
    '$mistake',
    async (mutant) => {
      const mutated = await coreOf(mutant, mutant.mistake.replaceAll(' ', '-'));
      const failing = await firstFailing(mutated, scenarioOf);
      expect((await shortest(mutated, failing)).violations).not.toEqual([]);
    },
    240_000,
  );
});

describe('is noticed within two thousand worlds: a server that', () => {
  it.each([
    ['releases by the key only', { releasesByKeyOnly: true }],
    ['does not raise its token', { keepsTheToken: true }],
  ])(
    '%s',
    async (_, faults) => {
      await firstFailing(core, (seed) => scenarioOf(seed, faults));
    },
    240_000,
  );
});

async function firstFailing(mutated: CoreUnderTest, worlds: (seed: number) => Scenario): Promise<Scenario> {
  for (let seed = 0; seed < FOUND_WITHIN; seed += 1) {
    const scenario = worlds(seed);
    const { violations } = await simulate(mutated, scenario);
    if (violations.length > 0) return scenario;
  }
  throw new Error(`not noticed in ${FOUND_WITHIN} worlds`);
}
