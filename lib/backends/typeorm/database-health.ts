import { type BackendHealth, LockConfigurationError, ReportedHealth } from '../../core/index.js';
import { untilAnswered } from './until-answered.js';

/**
 * What is known of a database by what was asked of it. When it does not answer it is asked in the background until it does:
 * nobody may need it for a long time, but whoever holds a lock, or decides by our health whether this process gets any work,
 * wants to know soon.
 */
export class DatabaseHealth {
  readonly #reported = new ReportedHealth();
  #asking = false;
  #over = false;

  /** @param ask rejects while there is no answer, and has that noted */
  constructor(private readonly ask: () => Promise<unknown>) {}

  get current(): BackendHealth {
    return this.#reported.current;
  }

  onChange(listener: (health: BackendHealth) => void): () => void {
    return this.#reported.onChange(listener);
  }

  /** Passes on how `step` ends, and notes it. A table that is not as it should be says nothing about the database. */
  async note<T>(step: () => Promise<T>): Promise<T> {
    try {
      const answer = await step();
      this.#report('up');
      return answer;
    } catch (error) {
      if (!(error instanceof LockConfigurationError)) this.down(String(error));
      throw error;
    }
  }

  down(trouble: string): void {
    this.#report('down', trouble);
    this.recover();
  }

  /** Nothing is asked of it any more, and nothing was lost. */
  idle(): void {
    this.#report('idle');
  }

  /** Asks in the background until there is an answer. */
  recover(): void {
    if (!this.#asking) void this.#ask();
  }

  /** For good. */
  end(): void {
    this.#over = true;
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    await untilAnswered(
      () => this.#isAnswered(),
      () => !this.#over,
    );
    this.#asking = false;
  }

  async #isAnswered(): Promise<boolean> {
    try {
      await this.ask();
      return true;
    } catch {
      return false;
    }
  }

  #report(status: BackendHealth['status'], trouble?: string): void {
    if (!this.#over) this.#reported.report(status, trouble);
  }
}
