import { Semaphore, systemClock, isFulfilledWithin } from 'nestjs-distributed-lock/core';

export const TIME_LIMIT_MS = 30_000;

/** Tests that do not disturb each other run together, before the first of them tells the outcome of its own. */
export class SideBySide {
  readonly #room: Semaphore;
  readonly #trials: Trial[] = [];

  constructor(atOnce: number) {
    this.#room = new Semaphore(atOnce);
  }

  it(name: string, check: () => Promise<void>, timeLimitMs = TIME_LIMIT_MS): void {
    const trial = new Trial(timeLimitMs, check);
    this.#trials.push(trial);
    it(name, () => trial.tell());
  }

  /** To be called when all are declared, in the block whose earlier `beforeAll` they need. */
  run(): void {
    const allMs = this.#trials.reduce((sum, { timeLimitMs }) => sum + timeLimitMs, 0);
    beforeAll(async () => {
      await Promise.all(this.#trials.map((trial) => this.#room.run(() => trial.run())));
    }, allMs);
  }
}

/** One test among others, and what came of it. */
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
      const inTime = await isFulfilledWithin(systemClock, this.timeLimitMs, this.check());
      if (!inTime) throw new Error(`was not over after ${this.timeLimitMs} ms`);
      this.#outcome = () => undefined;
    } catch (error) {
      this.#outcome = () => {
        throw error;
      };
    }
  }

  /** @throws the test's own failure */
  tell(): void {
    this.#outcome();
  }
}
