import { detached, systemClock, type Timer, type WakeUps, within } from '../../../core/index.js';
import { CHANGES_CHANNEL, LATE_LOSS } from './key-tracking.js';
import type { RedisClient } from './redis-client.js';
import type { RedisConnection } from './redis-connection.js';
import { toLoggableError } from '../error.js';
import { asList } from '../scripts/redis-values.js';

const MAX_UNSUBSCRIBE_MS = 200;
/** Time between two checks of the subscription, while this process has a waiter. */
const CHECK_MS = 5_000;
/** Time between two checks while the subscription only tells of keys that have changed. */
const TRACKING_CHECK_MS = 30_000;

/**
 * KEYS: channel, because some proxies refuse scripts without keys. ARGV: channel, to which no client adds its `keyPrefix`.
 */
const COUNT_LISTENERS = "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])";

/** The subscriptions by which servers wake the waiters of this process, and tell it of keys that have changed. */
export interface Subscriptions {
  /** Whether messages stay on the node of a cluster that has the channel's slot. */
  readonly isSharded: boolean;
  readonly wakeUps: WakeUps;
  /** Returns the channel by which the server of `leaseKey` reaches this process; `undefined` without a subscription. */
  channelFor(leaseKey: string): string | undefined;
  /** Connects for a waiter, and stays connected. Never throws: without a subscription waiters poll. */
  open(leaseKey: string): void;
  /** Connects for a holder whose key is to be tracked, and stays connected. Never throws. */
  track(leaseKey: string): void;
  close(): Promise<void>;
}

/**
 * The subscription on which one server wakes the waiters of this process, and tells it of keys that have changed. The first
 * waiter makes it connect, or the first lock that is held for longer than some milliseconds.
 *
 * A message is a hint, because messages may be lost. All waiters retry whenever the subscription begins or ends. While
 * a waiter exists, it subscribes again and again, and replaces its client when no answer comes: networks drop
 * idle connections without notice.
 */
export class Subscription implements Subscriptions {
  /** `s` for sharded Pub/Sub: SSUBSCRIBE, SUNSUBSCRIBE and the event `smessage`. */
  readonly #commandPrefix: 's' | '';
  readonly #stopWatchingHealth: () => void;
  #opening: Promise<void> | undefined;
  #client: RedisClient | undefined;
  #isSubscribed = false;
  #nextCheck: Timer | undefined;
  #checkedAt = 0;
  /** The reason why the last client was replaced, until the present client has answered a check. */
  #replacementReason: string | undefined;
  #isClosed = false;

  constructor(
    /** Connection for commands. */
    private readonly connection: RedisConnection,
    /** Name of the channel on which waiters are woken; `undefined` where waiters poll. */
    readonly name: string | undefined,
    readonly wakeUps: WakeUps,
    readonly isSharded: boolean,
  ) {
    this.#commandPrefix = isSharded ? 's' : '';
    // While commands fail, the subscription is probably dead, too. While commands work, a client without a subscription
    // may still be trying a former master.
    this.#stopWatchingHealth = connection.health.onChange(({ status }) => {
      if (this.#client && this.#isSubscribed === (status === 'down')) this.#replaceClient();
    });
  }

  channelFor(): string | undefined {
    return this.#isSubscribed ? this.name : undefined;
  }

  /** Connects once. The client reconnects by itself when it notices that its connection has ended. */
  open(): void {
    detached(() => {
      this.#opening ??= this.#connect();
      this.#scheduleCheck();
    });
  }

  track(): void {
    if (!this.#opening && this.connection.tracking.isWanted) this.open();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopWatchingHealth();
    this.#nextCheck?.cancel();
    await this.#opening;
    if (this.#client) this.connection.tracking.stopListening(this.#client);
    if (this.#isSubscribed) await this.#unsubscribe();
    this.#client?.disconnect();
  }

  async #connect(): Promise<void> {
    try {
      const client = await this.connection.makeSubscriber();
      if (this.#isClosed) return;
      this.#client = client;
      const { tracking } = this.connection;
      client.on('ready', () => {
        if (tracking.isWanted) void tracking.listen(client);
        void this.#subscribe(client, this.#replacementReason);
      });
      client.on(`${this.#commandPrefix}message`, (channel, payload) => {
        if (channel === this.name) this.wakeUps.deliver(String(payload));
      });
      if (tracking.isWanted) client.on('messageBuffer', tracking.onMessage);
      client.on('close', () => {
        tracking.stopListening(client);
        this.#setSubscribed(client, false);
      });
      // The connection for commands may work while this one fails, and does not report its errors.
      client.on('error', (error) => this.#reportError(error));
      client.connect().catch(() => undefined);
    } catch (error) {
      this.#reportError(error);
    }
  }

  #replaceClient(): void {
    const client = this.#client;
    if (client) {
      this.#setSubscribed(client, false);
      this.connection.tracking.stopListening(client);
      client.disconnect();
    }
    this.#client = undefined;
    this.#opening = this.#connect();
  }

  #scheduleCheck(): void {
    const onTime = (): void => {
      this.#nextCheck = undefined;
      void this.#check();
    };
    if (!this.#isClosed) this.#nextCheck ??= systemClock.schedule(CHECK_MS, onTime, { background: true });
  }

  async #check(): Promise<void> {
    const isNeeded = this.wakeUps.isAnyWaiting || this.#replacementReason !== undefined;
    if (!isNeeded && !this.connection.tracking.isPossible) return;
    const now = systemClock.now();
    if (isNeeded || now - this.#checkedAt >= TRACKING_CHECK_MS) {
      this.#checkedAt = now;
      const client = this.#client;
      if (client?.status !== 'ready') this.#replaceClient();
      else if (!isNeeded) await this.#confirmSubscription(client);
      else if (await this.#subscribe(client, undefined)) this.#replacementReason = undefined;
    }
    this.#scheduleCheck();
  }

  /** Waits for the answer, because the server hands keys to this process until it has seen the subscription end. */
  async #unsubscribe(): Promise<void> {
    const { name } = this;
    if (name === undefined) return;
    const unsubscribed = this.#client?.call(`${this.#commandPrefix}unsubscribe`, name).catch(() => undefined);
    if (unsubscribed) await within(systemClock, MAX_UNSUBSCRIBE_MS, unsubscribed);
  }

  /**
   * Resolves to whether the server has answered and counts this listener.
   * @param trouble advice for the health after a success
   */
  async #subscribe(client: RedisClient, trouble: string | undefined): Promise<boolean> {
    const { health } = this.connection;
    try {
      if (!(await this.#confirmSubscription(client))) return false;
      if (this.name !== undefined && !this.isSharded && (await this.#countListeners(this.name)) === 0) {
        throw new Error('scripts on the server say that nobody has subscribed, as behind some proxies');
      }
      health.setAdvice('subscription', trouble);
      this.#setSubscribed(client, true);
      return true;
    } catch (error) {
      this.#reportError(error);
      this.#setSubscribed(client, false);
      return false;
    }
  }

  /** Subscribes, also anew. Replaces the client when no answer comes. Resolves to whether the client is still in use. */
  async #confirmSubscription(client: RedisClient): Promise<boolean> {
    const { health, timeoutMs } = this.connection;
    const subscribing =
      this.name === undefined
        ? client.call('subscribe', CHANGES_CHANNEL)
        : client.call(`${this.#commandPrefix}subscribe`, this.name);
    const isAnswered = await within(systemClock, timeoutMs, subscribing);
    if (client !== this.#client || this.#isClosed) return false;
    if (isAnswered) return true;
    this.#replacementReason = `the subscription gave no sign of life for ${timeoutMs} ms, and was replaced`;
    health.setAdvice('subscription', this.#replacementReason);
    this.#replaceClient();
    return false;
  }

  /** Counts the listeners in a script, because scripts wake the waiters. Resolves to `NaN` when the server refuses it. */
  async #countListeners(name: string): Promise<number> {
    const counting = this.connection.sendCommand('EVAL', COUNT_LISTENERS, 1, name, name);
    const [, listeners] = await counting.then(asList).catch(() => []);
    return Number(listeners);
  }

  #reportError(error: unknown): void {
    const { message } = toLoggableError(error);
    const consequence = this.name === undefined ? LATE_LOSS : 'waiters have to poll';
    this.connection.health.setAdvice('subscription', `${consequence}, because the subscription failed: ${message}`);
  }

  #setSubscribed(client: RedisClient, isSubscribed: boolean): void {
    if (client !== this.#client || isSubscribed === this.#isSubscribed || this.#isClosed) return;
    this.#isSubscribed = isSubscribed;
    this.wakeUps.wakeAll();
  }
}
