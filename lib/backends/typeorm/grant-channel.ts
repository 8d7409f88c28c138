import type { Waiters } from '../../core/waiters.js';
import { type ConnectionSettings, OwnConnection } from './own-connection.js';
import type { WaitingLine } from './sql-dialect.js';
import { untilAnswered } from './until-answered.js';

/** The connection on which the server tells those who wait of their turn. Opened once somebody has to. */
export class GrantChannel {
  #connection: OwnConnection | undefined;
  #listening = false;
  /** Nothing would ever be heard from here. */
  #deaf = false;
  #opening = false;
  #closed = false;

  constructor(
    private readonly settings: ConnectionSettings,
    private readonly line: WaitingLine,
    private readonly table: string,
    private readonly waiters: Waiters,
  ) {}

  /** Whether grants are heard of. If not, they may soon be, and until then whoever waits must ask. */
  listen(): boolean {
    if (!this.#listening && !this.#deaf) void this.#listen();
    return this.#listening;
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
      () => !this.#closed && this.waiters.any,
    );
    this.#opening = false;
  }

  async #open(): Promise<boolean> {
    const connection = new OwnConnection(this.settings, () => this.#onLost());
    this.#connection = connection;
    try {
      await connection.open();
      const { run, client } = connection;
      this.#deaf = !(await this.line.listen(run, client, this.table, (message) => this.waiters.deliver(message)));
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
    // What was granted before was not heard.
    this.waiters.wakeAll();
    return true;
  }

  #onLost(): void {
    this.#listening = false;
    void this.#listen();
  }
}
