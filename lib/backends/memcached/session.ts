import type { Clock } from '../../core/index.js';
import type { MemcachedDialect } from './dialect.js';
import type { MemcachedConnection } from './transport/connection.js';
import type { ServerClock } from './server-clock.js';
import { adviceOn, secondsIn, statistics } from './server-statistics.js';

/** Our clock and the server's drift apart: what is known of it is read again when it is older than this. */
const READ_AGAIN_MS = 30_000;

/** A connection to a server that has shown it can keep locks, and all that is true on this connection only. */
export class MemcachedSession {
  /** The cas ids of our leases, by owner: they die with the connection, because the next server gives the same ones again. */
  readonly leases = new Map<string, { readonly cas: string; readonly value: string }>();
  #reading: Promise<void> | undefined;

  constructor(
    readonly connection: MemcachedConnection,
    readonly dialect: MemcachedDialect,
    readonly clock: ServerClock,
    private readonly settings: ReadonlyMap<string, string>,
    private readonly ourClock: Clock,
    /** What an operator should change. */
    public advice: string | undefined,
  ) {}

  /** Makes sure that the server's clock is known well enough to ask for a lease. */
  async prepare(): Promise<void> {
    if (this.ourClock.now() - this.clock.readAt < READ_AGAIN_MS) return;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #read(): Promise<void> {
    const sentAt = this.ourClock.now();
    const [found] = await this.connection.exchange(statistics(''));
    this.clock.read(secondsIn(found), sentAt);
    this.advice = adviceOn(found, this.settings);
  }
}
