import { SideBySide, TIME_LIMIT_MS } from '../support/side-by-side.js';
import { isQuickTier } from '../support/tier.js';
import type { BackendHarness } from './backend-harness.js';
import { timeLimitOf } from '../support/machine.js';
import { CLEAN_UP_MS, Contract } from './contract.js';

/** One promise, with clients of its own. */
export type Check = (contract: Contract) => Promise<void>;

/** @param timeLimitMs on a machine that is not slow */
export type Declare = (name: string, check: Check, timeLimitMs?: number) => void;

/** How a promise is declared, by what it does to others. */
export interface Declarations {
  /** Leaves the server and the event loop alone, and so runs beside others. */
  readonly it: Declare;
  /** Takes keys away on the server: beside others only where this harms nobody else. */
  readonly revoking: Declare;
  /** Freezes or restarts the server, blocks the event loop, counts, or is about speed: nothing runs beside it. */
  readonly alone: Declare;
}

/** How a theme declares its promises. */
export interface Suite extends Declarations {
  readonly harness: BackendHarness;
  /** Promises that wait for a lease to end or to be renewed. In the quick tier one backend of each family has them. */
  readonly timed: Declarations;
  /** Promises that are left to the full tier. */
  readonly thorough: Declarations;
}

export interface SuiteOptions {
  /** Whether the quick tier has the timed promises. @default true */
  readonly timedInQuickTier?: boolean;
}

/** As long as jest gives a test: a machine may become slow after a file has begun. */
const LEAST_LIMIT_MS = 300_000;

/** Most of the time promises wait. */
const AT_ONCE = 8;

const leaveOut: Declare = () => undefined;
const LEFT_OUT: Declarations = { it: leaveOut, revoking: leaveOut, alone: leaveOut };

/** The promises that may run side by side do so before the first test; the others run one by one. */
export function declarePromises(
  harness: BackendHarness,
  declare: (suite: Suite) => void,
  { timedInQuickTier = true }: SuiteOptions = {},
): void {
  const together = new SideBySide(AT_ONCE);
  const declareBy =
    (declareTest: (name: string, test: () => Promise<void>, timeLimitMs: number) => void): Declare =>
    (name, check, timeLimitMs = TIME_LIMIT_MS) => {
      const limitMs = Math.max(timeLimitOf(timeLimitMs), LEAST_LIMIT_MS);
      // The test's own limit comes first, and has it clean up.
      declareTest(name, () => run(harness, check, limitMs), limitMs + 2 * CLEAN_UP_MS);
    };
  const beside = declareBy(together.it.bind(together));
  const alone = declareBy(it);
  const all = { it: beside, revoking: harness.revokesOthers === true ? alone : beside, alone };
  const timed = isQuickTier && !timedInQuickTier ? LEFT_OUT : all;
  declare({ harness, ...all, timed, thorough: isQuickTier ? LEFT_OUT : all });
  together.run();
}

async function run(harness: BackendHarness, check: Check, limitMs: number): Promise<void> {
  await using contract = new Contract(harness);
  await contract.run(check, limitMs);
}
