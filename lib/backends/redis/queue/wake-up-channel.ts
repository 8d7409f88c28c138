import { detached, systemClock, type ReportedHealth, type Timer, type WakeUps, within } from '../../../core/index.js';
import type { ClientSource, RedisClient } from '../connection/redis-client.js';
import { cleanError } from '../error.js';

const LONGEST_GOODBYE_MS = 200;
/** How often the subscription gives a sign of life, while somebody waits. */
const SIGN_MS = 5_000;

/** How the servers reach the waiters of this process. */
export interface WakeUpChannels {
  /** Whether messages stay on the node of a cluster that has the channel's slot. */
  readonly sharded: boolean;
  /** The channel by which the server of `leaseKey` reaches this process; `undefined` when it cannot. */
  addressOf(leaseKey: string): string | undefined;
  /** For a waiter: connects, and stays connected. Never throws: without it, waiters poll. */
  open(leaseKey: string): void;
  close(): Promise<void>;
}

export interface WakeUpChannelOptions {
  readonly source: ClientSource;
  readonly name: string;
  /** @default false */
  readonly sharded?: boolean;
  readonly wakeUps: WakeUps;
  /** How long the server may take to answer. */
  readonly timeoutMs: number;
  /** How many listeners the server counts. Without it, or where it rejects, the subscription counts as heard. */
  readonly countListeners?: (name: string) => Promise<number>;
  /** Of the connection for commands. */
  readonly health: ReportedHealth;
}

/**
 * The channel on which a server wakes the waiters of this backend. A message is a hint: nobody here knows when the server began
 * to count. The channel connects for the first waiter, so a process without contention has one connection. Whenever it comes or
 * goes all waiters look again, because messages may be lost. Networks forget idle connections without a word. Therefore it
 * subscribes again and again while somebody waits, and is replaced when no answer comes.
 */
export class WakeUpChannel implements WakeUpChannels {
  readonly sharded: boolean;
  readonly #options: WakeUpChannelOptions;
  /** Begins the names of the commands and of the event. */
  readonly #kind: 's' | '';
  readonly #forgetHealth: () => void;
  #opening: Promise<void> | undefined;
  #client: RedisClient | undefined;
  #subscribed = false;
  #nextSign: Timer | undefined;
  /** Why the last subscription was replaced, until the present one gives a sign of life. */
  #trouble: string | undefined;
  #closed = false;

  constructor(options: WakeUpChannelOptions) {
    this.#options = options;
    this.sharded = options.sharded === true;
    this.#kind = this.sharded ? 's' : '';
    this.#forgetHealth = options.health.onChange(({ status }) => this.#onHealthChange(status === 'down'));
  }

  addressOf(): string | undefined {
    return this.#subscribed ? this.#options.name : undefined;
  }

  /** Connects once. From then on the client keeps the connection by itself, as far as it knows. */
  open(): void {
    detached(() => {
      this.#opening ??= this.#open();
      this.#expectSign();
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#forgetHealth();
    this.#nextSign?.cancel();
    await this.#opening;
    if (this.#subscribed) await this.#unsubscribe();
    this.#client?.disconnect();
  }

  async #open(): Promise<void> {
    try {
      const client = await this.#options.source.openSubscriber();
      if (this.#closed) return;
      this.#client = client;
      client.on('ready', () => void this.#subscribe(client, this.#trouble));
      client.on(`${this.#kind}message`, this.#onMessage);
      client.on('close', () => this.#onChange(client, false));
      // Each failed attempt ends in a 'close'; the other connection says what is wrong.
      client.on('error', () => undefined);
      client.connect().catch(() => undefined);
    } catch (error) {
      this.#complain(error);
    }
  }

  /** This connection may be dead without knowing it, or still on its way to a former master. */
  #onHealthChange(down: boolean): void {
    if (this.#client && this.#subscribed === down) this.#replace();
  }

  #replace(): void {
    const client = this.#client;
    if (client) this.#onChange(client, false);
    client?.disconnect();
    this.#client = undefined;
    this.#opening = this.#open();
  }

  #expectSign(): void {
    const onTime = (): void => {
      this.#nextSign = undefined;
      void this.#giveSign();
    };
    if (!this.#closed) this.#nextSign ??= systemClock.schedule(SIGN_MS, onTime, { background: true });
  }

  async #giveSign(): Promise<void> {
    if (!this.#options.wakeUps.any && this.#trouble === undefined) return;
    const client = this.#client;
    if (client?.status !== 'ready') this.#replace();
    else if (await this.#subscribe(client, undefined)) this.#trouble = undefined;
    this.#expectSign();
  }

  /** Awaited, because the server hands keys to this process until it sees the connection end. */
  async #unsubscribe(): Promise<void> {
    const unsubscribed = this.#client?.call(`${this.#kind}unsubscribe`, this.#options.name).catch(() => undefined);
    const late = new Promise<void>((resolve) => {
      systemClock.schedule(LONGEST_GOODBYE_MS, resolve, { background: true });
    });
    await Promise.race([unsubscribed, late]);
  }

  /** Resolves to whether the server answered, and counts this listener. @param trouble the health tells it then */
  async #subscribe(client: RedisClient, trouble: string | undefined): Promise<boolean> {
    const { name, timeoutMs, countListeners } = this.#options;
    try {
      const answered = await within(systemClock, timeoutMs, client.call(`${this.#kind}subscribe`, name));
      if (client !== this.#client || this.#closed) return false;
      if (!answered) return this.#onSilence();
      const listeners = await countListeners?.(name).catch(() => undefined);
      if (listeners === 0) throw new Error('the server says that nobody has subscribed');
      this.#options.health.advise('subscription', trouble);
      this.#onChange(client, true);
      return true;
    } catch (error) {
      this.#complain(error);
      this.#onChange(client, false);
      return false;
    }
  }

  #onSilence(): false {
    this.#trouble = `the subscription gave no sign of life for ${this.#options.timeoutMs} ms, and was replaced`;
    this.#options.health.advise('subscription', this.#trouble);
    this.#replace();
    return false;
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
    this.#options.wakeUps.wakeAll();
  }

  readonly #onMessage = (_channel: unknown, payload: unknown): void => this.#options.wakeUps.deliver(String(payload));
}
