import { systemClock, type Timer } from '../../../core/index.js';
import type { LeaseStatements, Query } from '../dialect/sql-dialect.js';

const LONGEST_INTERVAL_MS = 3_600_000;

/** Deletes the rows of keys that were free for long, in the background and some at a time. */
export class Reaper {
  #timer: Timer | undefined;
  #closed = false;

  constructor(
    private readonly query: Query,
    private readonly statements: LeaseStatements,
    private readonly table: string,
    private readonly idleMs: number,
  ) {
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #schedule(): void {
    const interval = Math.min(this.idleMs, LONGEST_INTERVAL_MS);
    this.#timer = systemClock.schedule(interval, () => void this.#reap(), { background: true });
  }

  async #reap(): Promise<void> {
    // A failure is seen in `health`, and the next round repeats it.
    await this.statements.reap(this.query, this.table, this.idleMs).catch(() => undefined);
    if (!this.#closed) this.#schedule();
  }
}
