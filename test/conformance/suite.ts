import { it } from '@jest/globals';
import { SideBySide, TIME_LIMIT_MS } from '../support/side-by-side.js';
import type { BackendHarness } from './backend-harness.js';
import { timeLimitOf } from '../support/machine.js';
import { CLEAN_UP_MS, Contract } from './contract.js';

/** One promise, with clients of its own. */
export type Check = (contract: Contract) => Promise<void>;

/** @param timeLimitMs on a machine that is not slow */
export type Declare = (name: string, check: Check, timeLimitMs?: number) => void;

/** How a theme declares its promises. */
export interface Suite {
  readonly harness: BackendHarness;
  /** Leaves the server and the event loop alone, and so runs beside others. */
  readonly it: Declare;
  /** Takes keys away on the server: beside others only where this harms nobody else. */
  readonly revoking: Declare;
  /** Freezes or restarts the server, blocks the event loop, counts, or is about speed: nothing runs beside it. */
  readonly alone: Declare;
}

/** As long as jest gives a test: a machine may become slow after a file has begun. */
const LEAST_LIMIT_MS = 300_000;

/** Most of the time promises wait; more at once, and they wait for the processor, which short leases do not bear. */
const atOnce = ({ shortTtlMs }: BackendHarness): number => (shortTtlMs <= 1_000 ? 3 : 8);

/** The promises that may run side by side do so before the first test; the others run one by one. */
export function declarePromises(harness: BackendHarness, declare: (suite: Suite) => void): void {
  const together = new SideBySide(atOnce(harness));
  const declareBy =
    (declareTest: (name: string, test: () => Promise<void>, timeLimitMs: number) => void): Declare =>
    (name, check, timeLimitMs = TIME_LIMIT_MS) => {
      const limitMs = Math.max(timeLimitOf(timeLimitMs), LEAST_LIMIT_MS);
      // The test's own limit comes first, and has it clean up.
      declareTest(name, () => run(harness, check, limitMs), limitMs + 2 * CLEAN_UP_MS);
    };
  const beside = declareBy(together.it.bind(together));
  const alone = declareBy(it);
  declare({ harness, it: beside, revoking: harness.revokesOthers === true ? alone : beside, alone });
  together.run();
}

async function run(harness: BackendHarness, check: Check, limitMs: number): Promise<void> {
  await using contract = new Contract(harness);
  await contract.run(check, limitMs);
}
