import type { Arena } from '../arena.js';
import type { Contestant } from '../contestants/contestant.js';
import { faultsOf, figuresOf, heat, type Heat, type Pair, type Rules, team, timesFloor } from './heat.js';
import type { Scenario } from './scenario.js';

const RULES: Rules = { keys: 'each', callers: 1, rhythm: 'ceaseless', insideMs: 0 };
const FIRST_MS = 1_000;

/** This is nearest to an application that locks now and then: little is compiled yet. */
export const COLD: Scenario = {
  id: 'cold',
  title: 'One caller, one key, the first second of a fresh process that is connected and has taken no lock yet',
  admits: () => true,
  seconds: ({ freshProcesses }) => freshProcesses * 5,
  measure: async (arena, contestant, { freshProcesses }, floor) => {
    const heats: Heat[] = [];
    const pairs: Pair[] = [];
    for (let left = freshProcesses; left > 0; left -= 1) {
      const base = floor && (await firstSecond(arena, floor));
      const own = await firstSecond(arena, contestant);
      heats.push(own);
      if (base) pairs.push({ own, floor: base });
    }
    const { perSecond, usEach } = figuresOf(heats, RULES).figures;
    const faults = faultsOf(heats);
    const figures = { perSecond: perSecond ?? NaN, usEach: usEach ?? NaN, ...timesFloor(pairs), ...faults.figures };
    return { ...faults, figures };
  },
};

function firstSecond(arena: Arena, contestant: Contestant): Promise<Heat> {
  return arena.within(contestant, 1, (workers) => heat(team(workers), RULES, FIRST_MS), { cold: true });
}
