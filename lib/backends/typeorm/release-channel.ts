import { type ConnectionSettings, OwnConnection } from './own-connection.js';
import type { WakeUps } from './sql-dialect.js';
import { untilAnswered } from './until-answered.js';

/** The connection on which the server announces releases that somebody waits for. Opened once somebody has to. */
export class ReleaseChannel {
  readonly #waiters = new Map<string, Set<() => void>>();
  #connection: OwnConnection | undefined;
  #listening = false;
  /** Nothing would ever be heard from here. */
  #deaf = false;
  #opening = false;
  #closed = false;

  constructor(
    private readonly settings: ConnectionSettings,
    private readonly wakeUps: WakeUps,
    private readonly table: string,
  ) {}

  isAwaited(key: string): boolean {
    return this.#waiters.has(this.wakeUps.channelKey(key));
  }

  /** Whether releases are heard of. If not, they may soon be, and until then whoever waits must ask. */
  listen(): boolean {
    if (!this.#listening && !this.#deaf) void this.#listen();
    return this.#listening;
  }

  watch(key: string, wake: () => void): () => void {
    const channelKey = this.wakeUps.channelKey(key);
    const waiters = this.#waiters.get(channelKey) ?? new Set();
    this.#waiters.set(channelKey, waiters.add(wake));
    return () => {
      waiters.delete(wake);
      if (waiters.size === 0 && this.#waiters.get(channelKey) === waiters) this.#waiters.delete(channelKey);
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connection?.close();
  }

  async #listen(): Promise<void> {
    if (this.#opening) return;
    this.#opening = true;
    await untilAnswered(
      () => this.#open(),
      () => !this.#closed && this.#waiters.size > 0,
    );
    this.#opening = false;
  }

  async #open(): Promise<boolean> {
    const connection = new OwnConnection(this.settings, () => this.#onLost());
    this.#connection = connection;
    try {
      await connection.open();
      const { run, client } = connection;
      this.#deaf = !(await this.wakeUps.listen(run, client, this.table, (key) => this.#wake(key)));
    } catch {
      // Whoever waits asks more often meanwhile, and reports what is wrong.
      connection.destroy();
      return false;
    }
    if (this.#deaf) {
      await connection.close();
      return true;
    }
    this.#listening = true;
    // What was released before was not heard.
    for (const key of this.#waiters.keys()) this.#wake(key);
    return true;
  }

  #onLost(): void {
    this.#listening = false;
    void this.#listen();
  }

  #wake(key: string): void {
    for (const wake of this.#waiters.get(key) ?? []) wake();
  }
}
