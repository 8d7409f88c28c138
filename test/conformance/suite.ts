import { beforeAll, it } from '@jest/globals';
import { Semaphore, systemClock, within } from 'nestjs-distributed-lock/core';
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
const TIME_LIMIT_MS = 30_000;

/**
 * The promises that may run side by side do so before the first test. Each has a test of its own, which tells the outcome.
 * The others run one by one.
 */
export function declarePromises(harness: BackendHarness, declare: (suite: Suite) => void): void {
  const together: Trial[] = [];
  const alone: Declare = (name, check, timeLimitMs = TIME_LIMIT_MS) => {
    it(name, () => run(harness, check), timeLimitMs);
  };
  const beside: Declare = (name, check, timeLimitMs = TIME_LIMIT_MS) => {
    const trial = new Trial(timeLimitMs, () => run(harness, check));
    together.push(trial);
    it(name, () => trial.tell());
  };
  declare({ harness, it: beside, revoking: harness.revokesOthers === true ? alone : beside, alone });
  const room = new Semaphore(atOnce(harness));
  const allMs = together.reduce((sum, { timeLimitMs }) => sum + timeLimitMs, 0);
  beforeAll(async () => {
    await Promise.all(together.map((trial) => room.run(() => trial.run())));
  }, allMs);
}

async function run(harness: BackendHarness, check: Check): Promise<void> {
  await using contract = new Contract(harness);
  await check(contract);
}

/** One promise among others, and what came of it. */
class Trial {
  #outcome: () => void = () => {
    throw new Error('was not run');
  };

  constructor(
    readonly timeLimitMs: number,
    private readonly check: () => Promise<void>,
  ) {}

  async run(): Promise<void> {
    try {
      const inTime = await within(systemClock, this.timeLimitMs, this.check());
      if (!inTime) throw new Error(`was not over after ${this.timeLimitMs} ms`);
      this.#outcome = () => undefined;
    } catch (error) {
      this.#outcome = () => {
        throw error;
      };
    }
  }

  /** @throws the promise's own failure */
  tell(): void {
    this.#outcome();
  }
}
