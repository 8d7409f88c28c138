import { randomInt } from 'node:crypto';

const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 30_000;
const LONGEST_SPACING_MS = 1_000;

/** How long one who leads, and might lead again at once, leaves the key to others. */
export class Pauses {
  #failures = 0;
  /** Work that returns at once costs the server no more than a lock that is renewed. */
  readonly #spacingMs: number;

  constructor(ttlMs: number) {
    this.#spacingMs = Math.min(LONGEST_SPACING_MS, ttlMs / 3);
  }

  /** After a term without a fault: none, unless the term was short. */
  after(ledMs: number): number {
    this.#failures = 0;
    return Math.max(0, this.#spacingMs - ledMs);
  }

  /** After work that threw: longer each time, give or take a quarter. A long term lets it begin anew. */
  afterFailure(ledMs: number): number {
    if (ledMs >= LONGEST_BACKOFF_MS) this.#failures = 0;
    const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failures, LONGEST_BACKOFF_MS);
    this.#failures += 1;
    return vary(backoffMs);
  }

  /** The backend failed, after it was asked again and again for a while. */
  afterOutage(): number {
    return vary(this.#spacingMs);
  }
}

function vary(ms: number): number {
  return ms * 0.75 + randomInt(Math.ceil(ms / 2) + 1);
}
