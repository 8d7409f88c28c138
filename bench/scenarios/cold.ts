import type { Arena } from '../arena.js';
import type { Contestant } from '../contestants/contestant.js';
import {
  compareWithFloor,
  computeFigures,
  createTeam,
  type Heat,
  type Pair,
  type RaceRules,
  runHeat,
  sumFaults,
} from './heat.js';
import type { Scenario } from './scenario.js';

const RULES: RaceRules = { keys: 'each', callers: 1, rhythm: 'ceaseless', holdMs: 0 };
const FIRST_MS = 1_000;

/** Scenario of an application that locks now and then: V8 has compiled little of the code yet. */
export const COLD: Scenario = {
  id: 'cold',
  title: 'One caller, one key, the first second of a fresh process that is connected and has taken no lock yet',
  admits: () => true,
  estimateSeconds: ({ freshProcesses }) => freshProcesses * 5,
  measure: async (arena, contestant, { freshProcesses }, floor) => {
    const heats: Heat[] = [];
    const pairs: Pair[] = [];
    for (let left = freshProcesses; left > 0; left -= 1) {
      const base = floor && (await runFirstSecond(arena, floor));
      const own = await runFirstSecond(arena, contestant);
      heats.push(own);
      if (base) pairs.push({ own, floor: base });
    }
    const { perSecond, usEach } = computeFigures(heats, RULES).figures;
    const faults = sumFaults(heats);
    const figures = {
      perSecond: perSecond ?? NaN,
      usEach: usEach ?? NaN,
      ...compareWithFloor(pairs),
      ...faults.figures,
    };
    return { ...faults, figures };
  },
};

function runFirstSecond(arena: Arena, contestant: Contestant): Promise<Heat> {
  return arena.runWithWorkers(contestant, 1, (workers) => runHeat(createTeam(workers), RULES, FIRST_MS), {
    skipsWarmUp: true,
  });
}
