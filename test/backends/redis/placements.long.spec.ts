import * as core from 'nestjs-distributed-lock/core';
import { RedisServer } from '../../servers/redis-server.js';
import { described } from '../../simulation/claims/described.js';
import { EVERYWHERE, judge, type Likeness } from '../../simulation/claims/judge.js';
import { sightsOfLine } from '../../simulation/claims/line-placement.js';
import type { Schedule, Sight } from '../../simulation/claims/moments.js';
import { schedules, seedsOr } from '../../simulation/claims/seeds.js';
import { lineScripts, type LineScripts } from './placement-scripts.js';
import { mutated, SCRIPT_MUTANTS } from './script-mutants.js';
import { ScriptPlacement } from './script-placement.js';

/** Number of schedules to compare, and the number among which a mutant must be found: see `seeds.ts`. */
const SEEDS = seedsOr(10_000);
const FOUND_WITHIN = 2_000;
const AT_ONCE = 100;

/** The queue lets those in who fit behind its holders, in order: with several limits, a claim waits for all before it. */
const OF_SCRIPTS: Likeness = { ofMixedLimits: false, whileSilent: false, whileOpen: false };

describe('the line of Redis, that in a value, and that of nodes', () => {
  const server = RedisServer.shared();

  async function firstWrong(scripts: LineScripts, count: number): Promise<string | undefined> {
    const placement = await ScriptPlacement.start(server.url, scripts);
    try {
      for (let from = 0; from < count; from += AT_ONCE) {
        const wrong = await firstWrongOf(placement, schedules(Math.min(AT_ONCE, count - from), from));
        if (wrong !== undefined) return wrong;
      }
      return undefined;
    } finally {
      placement.stop();
    }
  }

  it(
    'have the same holders after each step',
    async () => {
      expect(await firstWrong(lineScripts(), SEEDS)).toBeUndefined();
    },
    300_000 + SEEDS * 20,
  );

  it.each(SCRIPT_MUTANTS)('differ where the scripts $mistake', async (mutant) => {
    expect(await firstWrong(mutated(lineScripts(), mutant), FOUND_WITHIN)).toContain('seed');
  });
});

async function firstWrongOf(placement: ScriptPlacement, some: readonly Schedule[]): Promise<string | undefined> {
  const sights = await placement.sightsOf(some);
  for (const [at, schedule] of some.entries()) {
    const wrong =
      wrongIn('a line in a value', schedule, await sightsOfLine(core, schedule), EVERYWHERE) ??
      wrongIn('the scripts', schedule, sights[at] ?? [], OF_SCRIPTS);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function wrongIn(where: string, schedule: Schedule, sights: readonly Sight[], likeness: Likeness): string | undefined {
  const wrong = judge(schedule, sights, likeness);
  return wrong === undefined ? undefined : `${where}: ${wrong}\n${described(schedule, sights)}`;
}
