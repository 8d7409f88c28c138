import {
  type BackendHealth,
  LockConfigurationError,
  ReportedHealth,
  systemClock,
  type Timer,
  retryUntilAnswered,
} from '../../../core/index.js';

/** How long a connection that died silently is spoken of. */
const REMEMBERED_MS = 600_000;

/**
 * What is known of a database by what was asked of it. When it does not answer it is asked in the background until it does:
 * nobody may need it for a long time, but whoever holds a lock, or decides by our health whether this process gets any work,
 * wants to know soon.
 */
export class DatabaseHealth {
  readonly #reported = new ReportedHealth();
  #asking = false;
  #over = false;
  readonly #replaced = new Map<string, number>();
  #forgetting: Timer | undefined;

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

  /** Such a connection died without a word, and a new one serves: no failure, but its operator should know, for a while. */
  replaced(connection: string): void {
    const times = (this.#replaced.get(connection) ?? 0) + 1;
    this.#replaced.set(connection, times);
    const how = `${connection} was silent and has been replaced${times === 1 ? '' : ` (${times} times)`}`;
    this.advise(connection, `${how}: something on the way to the database may be forgetting idle connections`);
    this.#forgetting?.cancel();
    this.#forgetting = systemClock.schedule(REMEMBERED_MS, () => this.#forget(), { background: true });
  }

  /** What an operator should change; `undefined` when nothing is left to change. */
  advise(topic: string, advice: string | undefined): void {
    this.#reported.advise(topic, advice);
  }

  /** Asks in the background until there is an answer. */
  recover(): void {
    if (!this.#asking) void this.#ask();
  }

  /** For good. */
  end(): void {
    this.#over = true;
    this.#forgetting?.cancel();
  }

  #forget(): void {
    for (const connection of this.#replaced.keys()) this.advise(connection, undefined);
    this.#replaced.clear();
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    await retryUntilAnswered(
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
