import { it } from '@jest/globals';
import { SideBySide, TIME_LIMIT_MS } from '../support/side-by-side.js';
import type { BackendHarness } from './backend-harness.js';
import { Contract } from './contract.js';

/** One promise, with clients of its own. */
export type Check = (contract: Contract) => Promise<void>;

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

/** Most of the time promises wait; more at once, and they wait for the processor, which short leases do not bear. */
const atOnce = ({ shortTtlMs }: BackendHarness): number => (shortTtlMs <= 1_000 ? 3 : 8);

/** The promises that may run side by side do so before the first test; the others run one by one. */
export function declarePromises(harness: BackendHarness, declare: (suite: Suite) => void): void {
  const together = new SideBySide(atOnce(harness));
  const beside: Declare = (name, check, timeLimitMs) => together.it(name, () => run(harness, check), timeLimitMs);
  const alone: Declare = (name, check, timeLimitMs = TIME_LIMIT_MS) => {
    it(name, () => run(harness, check), timeLimitMs);
  };
  declare({ harness, it: beside, revoking: harness.revokesOthers === true ? alone : beside, alone });
  together.run();
}

async function run(harness: BackendHarness, check: Check): Promise<void> {
  await using contract = new Contract(harness);
  await check(contract);
}
