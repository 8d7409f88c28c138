import type { Line, LineStorage, StoredLine, LineUpdate } from 'nestjs-distributed-lock/core';
import type { Random } from '../../support/random.js';

const NOW = 1_000;

type Fate = 'answered' | 'answer lost' | 'never came';

/** A value that many change at once: requests come in any order, and some of them, or of their answers, are lost. */
export class ContendedStorage implements LineStorage<Line> {
  line: Line = [];
  lastToken = 0n;
  readonly #pending: (() => void)[] = [];

  constructor(
    private readonly random: Random,
    /** How many of all requests are lost. */
    private readonly lost: number,
    private readonly allowsSeveralTokens = true,
  ) {}

  read(): Promise<StoredLine<Line>> {
    return this.#request(() => {
      const { line, allowsSeveralTokens } = this;
      // A counter that each reading raises, or the last token of the value.
      if (!allowsSeveralTokens) this.lastToken += 1n;
      const nextToken = allowsSeveralTokens ? this.lastToken + 1n : this.lastToken;
      return { line, now: NOW, nextToken, allowsSeveralTokens, version: line };
    });
  }

  swap(_key: string, place: Line, { line, token }: LineUpdate): Promise<boolean> {
    return this.#request(() => {
      if (place !== this.line) return false;
      this.line = line;
      if (this.allowsSeveralTokens) this.lastToken = token ?? this.lastToken;
      return true;
    });
  }

  /** The server takes the requests one by one, in no order, until all of `work` is done. */
  async serve(work: Promise<unknown>): Promise<void> {
    const state = { isDone: false };
    const done = work.finally(() => (state.isDone = true));
    // A caller that has met a change pauses for a few milliseconds.
    while (!state.isDone) {
      await new Promise((resolve) => setImmediate(resolve));
      const [request] = this.#pending.splice(this.random.below(this.#pending.length), 1);
      request?.();
    }
    await done;
  }

  #request<T>(change: () => T): Promise<T> {
    const fate: Fate = this.random.chance(this.lost) ? this.random.oneOf(['answer lost', 'never came']) : 'answered';
    return new Promise((resolve, reject) => {
      this.#pending.push(() => {
        const answer = fate === 'never came' ? undefined : change();
        if (answer === undefined || fate !== 'answered') reject(new Error(fate));
        else resolve(answer);
      });
    });
  }
}
