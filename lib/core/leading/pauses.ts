import { randomInt } from 'node:crypto';

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
const MAX_SPACING_MS = 1_000;

/** Pauses in which a former leader leaves the key to other candidates. */
export class Pauses {
  #failures = 0;
  /** Minimum time between two terms, so that work that returns at once costs no more than renewals. */
  readonly #spacingMs: number;

  constructor(ttlMs: number) {
    this.#spacingMs = Math.min(MAX_SPACING_MS, ttlMs / 3);
  }

  /** Returns the pause after a term without an error: none, unless the term was short. */
  afterTerm(ledMs: number): number {
    this.#failures = 0;
    return Math.max(0, this.#spacingMs - ledMs);
  }

  /** Returns the pause after work that threw: longer each time, give or take a quarter. A long term ends that. */
  afterFailure(ledMs: number): number {
    if (ledMs >= MAX_BACKOFF_MS) this.#failures = 0;
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failures, MAX_BACKOFF_MS);
    this.#failures += 1;
    return addJitter(backoffMs);
  }

  /** Returns the pause after the backend has failed for a while. */
  afterOutage(): number {
    return addJitter(this.#spacingMs);
  }
}

function addJitter(ms: number): number {
  return ms * 0.75 + randomInt(Math.ceil(ms / 2) + 1);
}
