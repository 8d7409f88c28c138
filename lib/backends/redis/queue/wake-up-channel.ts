import { detached, systemClock, type Timer, type WakeUps, within } from '../../../core/index.js';
import type { RedisClient } from '../connection/redis-client.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { cleanError } from '../error.js';
import { asList } from '../scripts/redis-values.js';

const LONGEST_GOODBYE_MS = 200;
/** How often the subscription gives a sign of life, while somebody waits. */
const SIGN_MS = 5_000;

/** KEYS: channel. The channel is named as a key, because some proxies refuse scripts without one. */
const COUNT_LISTENERS = "return redis.call('PUBSUB', 'NUMSUB', KEYS[1])";

/** How the servers reach the waiters of this process. */
export interface WakeUpChannels {
  /** Whether messages stay on the node of a cluster that has the channel's slot. */
  readonly sharded: boolean;
  readonly wakeUps: WakeUps;
  /** The channel by which the server of `leaseKey` reaches this process; `undefined` when it cannot. */
  addressOf(leaseKey: string): string | undefined;
  /** For a waiter: connects, and stays connected. Never throws: without it, waiters poll. */
  open(leaseKey: string): void;
  close(): Promise<void>;
}

/**
 * The channel on which a server wakes the waiters of this backend. A message is a hint: nobody here knows when the
 * server began to count. The channel connects for the first waiter, so a process without contention has one connection.
 * Whenever it comes or goes all waiters look again, because messages may be lost. Networks forget idle connections
 * without a word. Therefore it subscribes again and again while somebody waits, and is replaced when no answer comes.
 */
export class WakeUpChannel implements WakeUpChannels {
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

  constructor(
    /** The one for commands. */
    private readonly connection: RedisConnection,
    readonly name: string,
    readonly wakeUps: WakeUps,
    readonly sharded: boolean,
  ) {
    this.#kind = sharded ? 's' : '';
    // This connection may be dead without knowing it, or still on its way to a former master.
    this.#forgetHealth = connection.health.onChange(({ status }) => {
      if (this.#client && this.#subscribed === (status === 'down')) this.#replace();
    });
  }

  addressOf(): string | undefined {
    return this.#subscribed ? this.name : undefined;
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
      const client = await this.connection.openSubscriber();
      if (this.#closed) return;
      this.#client = client;
      client.on('ready', () => void this.#subscribe(client, this.#trouble));
      client.on(`${this.#kind}message`, (_channel, payload) => this.wakeUps.deliver(String(payload)));
      client.on('close', () => this.#onChange(client, false));
      // Each failed attempt ends in a 'close'. The connection for commands may be well, and know nothing of this error.
      client.on('error', (error) => this.#complain(error));
      client.connect().catch(() => undefined);
    } catch (error) {
      this.#complain(error);
    }
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
    if (!this.wakeUps.isAnyWaiting && this.#trouble === undefined) return;
    const client = this.#client;
    if (client?.status !== 'ready') this.#replace();
    else if (await this.#subscribe(client, undefined)) this.#trouble = undefined;
    this.#expectSign();
  }

  /** Awaited, because the server hands keys to this process until it sees the connection end. */
  async #unsubscribe(): Promise<void> {
    const unsubscribed = this.#client?.call(`${this.#kind}unsubscribe`, this.name).catch(() => undefined);
    if (unsubscribed) await within(systemClock, LONGEST_GOODBYE_MS, unsubscribed);
  }

  /** Resolves to whether the server answered, and counts this listener. @param trouble the health tells it then */
  async #subscribe(client: RedisClient, trouble: string | undefined): Promise<boolean> {
    const { health, timeoutMs } = this.connection;
    try {
      const answered = await within(systemClock, timeoutMs, client.call(`${this.#kind}subscribe`, this.name));
      if (client !== this.#client || this.#closed) return false;
      if (!answered) {
        this.#trouble = `the subscription gave no sign of life for ${timeoutMs} ms, and was replaced`;
        health.advise('subscription', this.#trouble);
        this.#replace();
        return false;
      }
      if (!this.sharded && (await this.#countListeners()) === 0) {
        throw new Error('scripts on the server say that nobody has subscribed, as behind some proxies');
      }
      health.advise('subscription', trouble);
      this.#onChange(client, true);
      return true;
    } catch (error) {
      this.#complain(error);
      this.#onChange(client, false);
      return false;
    }
  }

  /** As a script sees it, because scripts wake the waiters. `NaN` where the server does not count its listeners. */
  async #countListeners(): Promise<number> {
    const counting = this.connection.send('EVAL', COUNT_LISTENERS, 1, this.name);
    const [, listeners] = await counting.then(asList).catch(() => []);
    return Number(listeners);
  }

  #complain(error: unknown): void {
    const { message } = cleanError(error);
    const trouble = `waiters have to poll, because the subscription failed: ${message}`;
    this.connection.health.advise('subscription', trouble);
  }

  #onChange(client: RedisClient, subscribed: boolean): void {
    if (client !== this.#client || subscribed === this.#subscribed || this.#closed) return;
    this.#subscribed = subscribed;
    this.wakeUps.wakeAll();
  }
}
