import { randomInt } from 'node:crypto';

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
const MAX_SPACING_MS = 1_000;

/** Pauses of a former leader before it becomes a candidate again. */
export class TermPauses {
  #failureCount = 0;
  /**
   * Minimum time between the beginnings of two terms. Work that returns at once then costs no more requests than
   * renewals.
   */
  readonly #spacingMs: number;

  constructor(ttlMs: number) {
    this.#spacingMs = Math.min(MAX_SPACING_MS, ttlMs / 3);
  }

  /** Returns the pause after a term without an error: 0, unless the term was short. */
  afterTerm(ledMs: number): number {
    this.#failureCount = 0;
    return Math.max(0, this.#spacingMs - ledMs);
  }

  /** Returns the pause after work that threw. It doubles with each failure until a term was long enough. */
  afterFailure(ledMs: number): number {
    if (ledMs >= MAX_BACKOFF_MS) this.#failureCount = 0;
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failureCount, MAX_BACKOFF_MS);
    this.#failureCount += 1;
    return addJitter(backoffMs);
  }

  /** Returns the pause after the backend has failed. */
  afterOutage(): number {
    return addJitter(this.#spacingMs);
  }
}

function addJitter(ms: number): number {
  return ms * 0.75 + randomInt(Math.ceil(ms / 2) + 1);
}
