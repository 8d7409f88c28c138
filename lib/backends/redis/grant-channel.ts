import { randomUUID } from 'node:crypto';
import { type Clock, type ReportedHealth, systemClock, type Timer } from '../../core/index.js';
import type { ClientSource, RedisClient } from './redis-client.js';
import { cleanError } from './redis-error.js';

const LONGEST_GOODBYE_MS = 200;
/** So much later than its end a lease has surely ended on the server's clock too. */
const AFTER_EXPIRY_MS = 5;

interface Waiter {
  readonly wake: () => void;
  alarm?: Timer;
}

/**
 * The one channel on which the server talks to this backend: "the key is yours", or "look again after so many milliseconds".
 * Never more than a wake-up, because nobody here knows when the server began to count. Connects when somebody first has to
 * wait, so a process without contention has one connection. Whenever it comes or goes everybody looks again, since whatever
 * was said meanwhile is lost.
 */
export class GrantChannel {
  readonly #name: string;
  readonly #source: ClientSource;
  readonly #health: ReportedHealth;
  readonly #clock: Clock;
  readonly #waiters = new Map<string, Waiter>();
  #opening: Promise<void> | undefined;
  #client: RedisClient | undefined;
  #subscribed = false;
  #closed = false;

  constructor(source: ClientSource, prefix: string, health: ReportedHealth, clock: Clock = systemClock) {
    this.#source = source;
    this.#name = `${prefix}:${randomUUID()}`;
    this.#health = health;
    this.#clock = clock;
  }

  /** Where a waiter can be reached now; `undefined` for one who was not watched or cannot be reached. */
  addressOf(owner: string): string | undefined {
    return this.#subscribed && this.#waiters.has(owner) ? this.#name : undefined;
  }

  watches(owner: string): boolean {
    return this.#waiters.has(owner);
  }

  watch(owner: string, wake: () => void): () => void {
    const waiter: Waiter = { wake };
    this.#waiters.set(owner, waiter);
    return () => {
      waiter.alarm?.cancel();
      this.#waiters.delete(owner);
    };
  }

  /** Connects, once; from then on the client keeps the connection by itself. Never rejects: without it, waiters poll. */
  open(): Promise<void> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** The way to the server was broken, so this connection may be dead without knowing. */
  reconnect(): void {
    if (this.#subscribed) this.#client?.disconnect(true);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#opening;
    if (this.#subscribed) await this.#unsubscribe();
    this.#client?.disconnect();
  }

  async #open(): Promise<void> {
    try {
      const client = await this.#source.openSubscriber();
      if (this.#closed) return;
      this.#client = client;
      client.on('ready', () => void this.#subscribe(client));
      client.on('message', this.#onMessage);
      client.on('close', () => this.#onChange(false));
      // Each failed attempt ends in a 'close'; the other connection says what is wrong.
      client.on('error', () => undefined);
      client.connect().catch(() => undefined);
    } catch (error) {
      this.#complain(error);
    }
  }

  /** Asked for and awaited, or else the server would hand keys to us for as long as it has not seen the connection end. */
  async #unsubscribe(): Promise<void> {
    const unsubscribed = this.#client?.call('unsubscribe', this.#name).catch(() => undefined);
    const late = new Promise<void>((resolve) => {
      this.#clock.schedule(LONGEST_GOODBYE_MS, resolve, { background: true });
    });
    await Promise.race([unsubscribed, late]);
  }

  async #subscribe(client: RedisClient): Promise<void> {
    try {
      await client.call('subscribe', this.#name);
      this.#health.advise('subscription', undefined);
      this.#onChange(true);
    } catch (error) {
      this.#complain(error);
    }
  }

  #complain(error: unknown): void {
    this.#health.advise(
      'subscription',
      `waiters have to poll, because the subscription failed: ${cleanError(error).message}`,
    );
  }

  #onChange(subscribed: boolean): void {
    if (subscribed === this.#subscribed || this.#closed) return;
    this.#subscribed = subscribed;
    for (const { wake } of this.#waiters.values()) wake();
  }

  readonly #onMessage = (_channel: unknown, payload: unknown): void => {
    const message = String(payload);
    const bar = message.lastIndexOf('|');
    const waiter = this.#waiters.get(message.slice(0, bar));
    if (!waiter) return;
    const delayMs = Number(message.slice(bar + 1));
    waiter.alarm?.cancel();
    if (delayMs === 0) waiter.wake();
    else waiter.alarm = this.#clock.schedule(delayMs + AFTER_EXPIRY_MS, waiter.wake);
  };
}
