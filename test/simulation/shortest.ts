import { MAX_HAND_OFFS } from '../../lib/core/options/hand-off-options.js';
import type { Scenario } from './scenario.js';
import { type CoreUnderTest, type Outcome, simulate } from './simulation.js';

const REDUCTIONS: readonly ((scenario: Scenario) => Scenario)[] = [
  (scenario) => ({ ...scenario, durationMs: scenario.durationMs / 2 }),
  (scenario) => ({ ...scenario, durationMs: scenario.durationMs * 0.8 }),
  (scenario) => ({ ...scenario, processes: Math.max(1, scenario.processes - 1) }),
  (scenario) => ({ ...scenario, callers: Math.max(1, scenario.callers - 1) }),
  (scenario) => ({ ...scenario, keys: scenario.keys.slice(0, 1) }),
  (scenario) => ({ ...scenario, freezes: Math.max(0, scenario.freezes - 1) }),
  (scenario) => ({ ...scenario, absences: 0 }),
  (scenario) => ({ ...scenario, wakes: false }),
  (scenario) => ({ ...scenario, store: 'unordered' }),
  (scenario) => ({ ...scenario, maxHandOffs: MAX_HAND_OFFS }),
  (scenario) => ({ ...scenario, weather: { ...scenario.weather, lost: 0 } }),
  (scenario) => ({ ...scenario, weather: { ...scenario.weather, slow: 0 } }),
  (scenario) => ({ ...scenario, weather: { ...scenario.weather, stalled: 0 } }),
  ...(['watchdogOff', 'maxHold', 'lockDelay', 'reentrancy', 'signals', 'unawaited', 'minHold'] as const).map(
    (way) => (scenario: Scenario) => ({ ...scenario, ways: { ...scenario.ways, [way]: false } }),
  ),
];

/** Leaves out of a failing scenario whatever it fails without, and of several such ones prefers the shorter history. */
export async function shortest(core: CoreUnderTest, failing: Scenario): Promise<{ scenario: Scenario } & Outcome> {
  let best = { scenario: failing, ...(await outcomeOf(core, failing)) };
  for (let shorter = true; shorter;) {
    shorter = false;
    for (const reduce of REDUCTIONS) {
      const scenario = reduce(best.scenario);
      const outcome = await outcomeOf(core, scenario);
      if (outcome.violations.length === 0 || outcome.history.length >= best.history.length) continue;
      best = { scenario, ...outcome };
      shorter = true;
    }
  }
  return best;
}

async function outcomeOf(core: CoreUnderTest, scenario: Scenario): Promise<Outcome> {
  const { violations, history, grants } = await simulate(core, scenario);
  return { violations, history, grants };
}
