import { randomInt } from 'node:crypto';

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
const MAX_SPACING_MS = 1_000;

/** Milliseconds for which a former leader pauses before it becomes a candidate again. */
export class TermPauses {
  #failureCount = 0;
  /** Minimum time between the beginnings of two terms, which limits the requests of work that returns at once. */
  readonly #spacingMs: number;

  constructor(ttlMs: number) {
    this.#spacingMs = Math.min(MAX_SPACING_MS, ttlMs / 3);
  }

  pauseMsAfterTerm(ledMs: number): number {
    this.#failureCount = 0;
    return Math.max(0, this.#spacingMs - ledMs);
  }

  pauseMsAfterFailure(ledMs: number): number {
    if (ledMs >= MAX_BACKOFF_MS) this.#failureCount = 0;
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failureCount, MAX_BACKOFF_MS);
    this.#failureCount += 1;
    return addJitter(backoffMs);
  }

  pauseMsAfterOutage(): number {
    return addJitter(this.#spacingMs);
  }
}

function addJitter(ms: number): number {
  return ms * 0.75 + randomInt(Math.ceil(ms / 2) + 1);
}
