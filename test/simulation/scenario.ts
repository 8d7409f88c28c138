import { MAX_HAND_OFFS } from '../../lib/core/options/hand-off-options.js';
import { Random } from '../support/random.js';
import type { ServerFaults } from './simulated-server.js';
import type { LinkScenario } from './simulated-link.js';

/** All that a seed decides at the beginning; whatever is left out of it makes a smaller one. */
export interface Scenario extends LinkScenario {
  readonly seed: number;
  readonly keys: readonly string[];
  readonly processes: number;
  readonly callers: number;
  readonly patienceMs: number;
  readonly pollMs: number;
  /** How often a process stands still, and the server is away, in the whole time. */
  readonly freezes: number;
  readonly absences: number;
  readonly maxHandOffs: number;
  readonly ways: {
    readonly watchdogOff: boolean;
    readonly maxHold: boolean;
    readonly lockDelay: boolean;
    readonly reentrancy: boolean;
    readonly signals: boolean;
    readonly unawaited: boolean;
    readonly minHold: boolean;
  };
  readonly serverFaults: ServerFaults;
}

export function scenarioOf(seed: number, serverFaults: ServerFaults = {}): Scenario {
  const random = new Random(seed);
  const ttlMs = random.oneOf([200, 1_000, 5_000, 10_000]);
  const stormy = random.chance(0.7);
  const maybe = (share: number): boolean => random.chance(share);
  return {
    seed,
    keys: maybe(0.7) ? ['a'] : ['a', 'b'],
    processes: 2 + random.below(2),
    callers: 1 + random.below(3),
    ttlMs,
    durationMs: ttlMs * 8,
    patienceMs: random.oneOf([0, 100, 1_000]),
    pollMs: random.oneOf([20, 50, ttlMs]),
    weather: {
      lost: stormy ? random.fraction() * 0.15 : 0,
      slow: stormy ? random.fraction() * 0.3 : 0,
      longestMs: ttlMs * 3 * random.fraction(),
      stalled: maybe(0.5) ? random.fraction() * 0.15 : 0,
      stallMs: ttlMs,
      requestTimeoutMs: Math.max(40, ttlMs * random.fraction()),
    },
    store: random.oneOf(['unordered', 'ordered', 'session']),
    wakes: maybe(0.5),
    freezes: maybe(0.7) ? random.below(5) : 0,
    absences: maybe(0.4) ? random.below(3) : 0,
    maxHandOffs: maybe(0.3) ? random.below(3) : MAX_HAND_OFFS,
    ways: {
      watchdogOff: maybe(0.5),
      maxHold: maybe(0.3),
      lockDelay: maybe(0.3),
      reentrancy: maybe(0.5),
      signals: maybe(0.5),
      unawaited: maybe(0.3),
      minHold: maybe(0.3),
    },
    serverFaults,
  };
}
