import { systemClock } from '../../core/index.js';
import { pause } from '../../core/timers.js';

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

/**
 * Asks in the background, less and less often, until the database answers. Nobody may need it for a long time, but whoever
 * holds a lock, or decides by the health of this process whether it gets any work, wants to know soon.
 */
export class Recovery {
  #running = false;
  #over = false;

  /** @param ask rejects while there is no answer */
  constructor(private readonly ask: () => Promise<unknown>) {}

  start(): void {
    if (!this.#running) void this.#run();
  }

  /** For good. */
  end(): void {
    this.#over = true;
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (
      let delay = FIRST_RETRY_MS;
      !this.#over && !(await this.#isAnswered());
      delay = Math.min(delay * 2, LONGEST_RETRY_MS)
    ) {
      await pause(systemClock, delay, { background: true });
    }
    this.#running = false;
  }

  async #isAnswered(): Promise<boolean> {
    try {
      await this.ask();
      return true;
    } catch {
      // It was reported to whoever looks at the health.
      return false;
    }
  }
}
