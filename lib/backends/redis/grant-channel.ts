import { type Clock, systemClock, type ReportedHealth } from '../../core/index.js';
import type { Waiters } from '../../core/waiters.js';
import type { ClientSource, RedisClient } from './redis-client.js';
import { cleanError } from './redis-error.js';

const LONGEST_GOODBYE_MS = 200;

/** How the servers reach those of this process who wait. */
export interface GrantChannels {
  /** Whether messages stay on the node of a cluster that has the channel's slot. */
  readonly sharded: boolean;
  /** Where the server of `leaseKey` can reach us now; `undefined` when it cannot. */
  addressOf(leaseKey: string): string | undefined;
  /** Makes sure that it can soon. Never throws: without it, waiters poll. */
  open(leaseKey: string): void;
  close(): Promise<void>;
}

export interface GrantChannelOptions {
  readonly source: ClientSource;
  readonly name: string;
  /** @default false */
  readonly sharded?: boolean;
  readonly waiters: Waiters;
  /** The server's, as the connection for commands knows it. */
  readonly health: ReportedHealth;
  readonly clock?: Clock;
}

/**
 * The one channel on which a server talks to this backend: "the key is yours", or "look again after so many milliseconds".
 * Never more than a wake-up, because nobody here knows when the server began to count. Connects when somebody first has to
 * wait, so a process without contention has one connection. Whenever it comes or goes everybody looks again, since whatever
 * was said meanwhile is lost.
 */
export class GrantChannel implements GrantChannels {
  readonly sharded: boolean;
  readonly #options: GrantChannelOptions;
  /** What the names of the commands and of the event begin with. */
  readonly #kind: 's' | '';
  readonly #clock: Clock;
  readonly #forgetHealth: () => void;
  #opening: Promise<void> | undefined;
  #client: RedisClient | undefined;
  #subscribed = false;
  #closed = false;

  constructor(options: GrantChannelOptions) {
    this.#options = options;
    this.sharded = options.sharded === true;
    this.#kind = this.sharded ? 's' : '';
    this.#clock = options.clock ?? systemClock;
    this.#forgetHealth = options.health.onChange(({ status }) => this.#onHealthChange(status === 'down'));
  }

  addressOf(): string | undefined {
    return this.#subscribed ? this.#options.name : undefined;
  }

  /** Connects, once; from then on the client keeps the connection by itself. */
  open(): void {
    this.#opening ??= this.#open();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#forgetHealth();
    await this.#opening;
    if (this.#subscribed) await this.#unsubscribe();
    this.#client?.disconnect();
  }

  async #open(): Promise<void> {
    try {
      const client = await this.#options.source.openSubscriber();
      if (this.#closed) return;
      this.#client = client;
      client.on('ready', () => void this.#subscribe(client));
      client.on(`${this.#kind}message`, this.#onMessage);
      client.on('close', () => this.#onChange(client, false));
      // Each failed attempt ends in a 'close'; the other connection says what is wrong.
      client.on('error', () => undefined);
      client.connect().catch(() => undefined);
    } catch (error) {
      this.#complain(error);
    }
  }

  /** This connection may be dead without knowing it; or still be on its way to a server that is the master no more. */
  #onHealthChange(down: boolean): void {
    const client = this.#client;
    if (!client || this.#subscribed !== down) return;
    this.#onChange(client, false);
    client.disconnect();
    this.#client = undefined;
    this.#opening = this.#open();
  }

  /** Asked for and awaited, or else the server would hand keys to us for as long as it has not seen the connection end. */
  async #unsubscribe(): Promise<void> {
    const unsubscribed = this.#client?.call(`${this.#kind}unsubscribe`, this.#options.name).catch(() => undefined);
    const late = new Promise<void>((resolve) => {
      this.#clock.schedule(LONGEST_GOODBYE_MS, resolve, { background: true });
    });
    await Promise.race([unsubscribed, late]);
  }

  async #subscribe(client: RedisClient): Promise<void> {
    try {
      await client.call(`${this.#kind}subscribe`, this.#options.name);
      this.#options.health.advise('subscription', undefined);
      this.#onChange(client, true);
    } catch (error) {
      this.#complain(error);
    }
  }

  #complain(error: unknown): void {
    this.#options.health.advise(
      'subscription',
      `waiters have to poll, because the subscription failed: ${cleanError(error).message}`,
    );
  }

  #onChange(client: RedisClient, subscribed: boolean): void {
    if (client !== this.#client || subscribed === this.#subscribed || this.#closed) return;
    this.#subscribed = subscribed;
    this.#options.waiters.wakeAll();
  }

  readonly #onMessage = (_channel: unknown, payload: unknown): void => this.#options.waiters.deliver(String(payload));
}
