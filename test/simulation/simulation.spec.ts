import { describe, expect, it } from '@jest/globals';
import * as core from 'nestjs-distributed-lock/core';
import { coreOf, MUTANTS } from './mutants.js';
import { type Scenario, scenarioOf } from './scenario.js';
import { shortest } from './shortest.js';
import { type CoreUnderTest, simulate } from './simulation.js';

/** How many worlds are tried, and from which one on: `SIMULATION_SEEDS=100000 npm test -- simulation` takes a third of an hour. */
const SEEDS = Number(process.env['SIMULATION_SEEDS'] ?? 1_000);
const FIRST = Number(process.env['SIMULATION_FIRST'] ?? 0);
const FOUND_WITHIN = 1_000;

describe('in a world where all goes wrong that can', () => {
  it(
    'one caller at a time believes, tokens grow, every call settles, and nothing is left',
    async () => {
      let grants = 0;
      for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
        const outcome = await simulate(core, scenarioOf(seed));
        grants += outcome.grants;
        if (outcome.violations.length > 0) throw new Error(await report(core, scenarioOf(seed)));
      }
      expect(grants).toBeGreaterThan(SEEDS);
    },
    60_000 + SEEDS * 60,
  );

  it('a seed repeats exactly', async () => {
    const once = await simulate(core, scenarioOf(7));
    expect(once.history.length).toBeGreaterThan(10);
    expect((await simulate(core, scenarioOf(7))).history).toEqual(once.history);
  });
});

describe('is noticed within a thousand worlds: a core that', () => {
  it.each(MUTANTS)(
    '$mistake',
    async (mutant) => {
      const mutated = await coreOf(mutant, mutant.mistake.replaceAll(' ', '-'));
      const failing = await firstFailing(mutated, scenarioOf);
      expect((await shortest(mutated, failing)).violations).not.toEqual([]);
    },
    120_000,
  );
});

describe('is noticed within a thousand worlds: a server that', () => {
  it.each([
    ['releases by the key only', { releasesByKeyOnly: true }],
    ['does not raise its token', { keepsTheToken: true }],
  ])(
    '%s',
    async (_, faults) => {
      await firstFailing(core, (seed) => scenarioOf(seed, faults));
    },
    120_000,
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

async function report(failing: CoreUnderTest, scenario: Scenario): Promise<string> {
  const { violations, history, scenario: smallest } = await shortest(failing, scenario);
  return `${violations.join('\n')}\n\nin ${JSON.stringify(smallest)}\n\n${history.join('\n')}`;
}
