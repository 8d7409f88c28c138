import { runWithoutContext, systemClock, type Timer, type WakeUps, isFulfilledWithin } from '../../../core/index.js';
import { CHANGES_CHANNEL, NO_TRACKING_CONSEQUENCE } from './key-tracking.js';
import type { RedisClient } from './redis-client.js';
import type { RedisConnection } from './redis-connection.js';
import { toLoggableError } from '../error.js';
import { asList } from '../scripts/redis-values.js';

const MAX_UNSUBSCRIBE_MS = 200;
/** Time between two checks of the subscription, while this process has a waiter. */
const CHECK_MS = 5_000;
/** Time between two checks while the subscription only reports changed keys. */
const TRACKING_CHECK_MS = 30_000;

/**
 * Lua code that counts the subscribers to the channel ARGV[1]. KEYS[1] repeats the channel, because some proxies refuse
 * scripts without keys. The script does not read KEYS[1], because the client may put its `keyPrefix` before that text.
 */
const COUNT_LISTENERS_SCRIPT = "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])";

export interface Subscriptions {
  /** Whether messages stay on the node of a cluster that has the channel's slot. */
  readonly isSharded: boolean;
  readonly wakeUps: WakeUps;
  /** Returns the channel by which the server reaches this process; `undefined` without a subscription. */
  channelFor(leaseKey: string): string | undefined;
  /** Never throws: without a subscription waiters poll. */
  openForWaiter(leaseKey: string): void;
  /** Opens the subscription that reports changed keys, if keys are tracked. */
  openForHolder(leaseKey: string): void;
  close(): Promise<void>;
}

/**
 * Subscription on which one server wakes the waiters of this process, and reports changed keys. It connects when the
 * first caller waits, or when the first lock has been held for some milliseconds.
 *
 * Messages are only hints, because they may be lost: all waiters retry whenever the subscription begins or ends. While
 * a caller waits, the subscription is confirmed again and again, because networks drop idle connections without notice.
 */
export class Subscription implements Subscriptions {
  /** `s` for sharded Pub/Sub: SSUBSCRIBE, SUNSUBSCRIBE and the event `smessage`. */
  readonly #commandPrefix: 's' | '';
  readonly #stopWatchingHealth: () => void;
  #connectPromise: Promise<void> | undefined;
  #client: RedisClient | undefined;
  #isSubscribed = false;
  #nextCheck: Timer | undefined;
  #lastCheckAt = 0;
  /** The reason why the last client was replaced, until the present client has answered a check. */
  #replacementReason: string | undefined;
  #isClosed = false;

  constructor(
    /** Connection for commands. */
    private readonly connection: RedisConnection,
    /** Name of the channel on which waiters are woken; `undefined` where waiters poll. */
    readonly channelName: string | undefined,
    readonly wakeUps: WakeUps,
    readonly isSharded: boolean,
  ) {
    this.#commandPrefix = isSharded ? 's' : '';
    // When commands fail, the subscription is probably dead, too. When commands work again, a client without a
    // subscription may still be trying a former master.
    this.#stopWatchingHealth = connection.health.onChange(({ status }) => {
      if (this.#client && this.#isSubscribed === (status === 'down')) this.#replaceClient();
    });
  }

  channelFor(): string | undefined {
    return this.#isSubscribed ? this.channelName : undefined;
  }

  openForWaiter(): void {
    runWithoutContext(() => {
      this.#connectPromise ??= this.#connect();
      this.#scheduleCheck();
    });
  }

  openForHolder(): void {
    if (!this.#connectPromise && this.connection.tracking.isWanted) this.openForWaiter();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopWatchingHealth();
    this.#nextCheck?.cancel();
    await this.#connectPromise;
    if (this.#client) this.connection.tracking.end(this.#client);
    if (this.#isSubscribed) await this.#unsubscribe();
    this.#client?.disconnect();
  }

  async #connect(): Promise<void> {
    try {
      const client = await this.connection.makeSubscriber();
      // A check may have started another attempt while the package of the client was loaded.
      if (this.#isClosed || this.#client) return;
      this.#client = client;
      const { tracking } = this.connection;
      client.on('ready', () => {
        if (tracking.isWanted) void tracking.listen(client);
        void this.#subscribe(client, this.#replacementReason);
      });
      client.on(`${this.#commandPrefix}message`, (channel, payload) => {
        if (channel === this.channelName) this.wakeUps.deliver(String(payload));
      });
      if (tracking.isWanted) client.on('messageBuffer', tracking.onMessage);
      client.on('close', () => {
        tracking.stopListening(client);
        this.#setSubscribed(client, false);
      });
      // The connection for commands may work while the subscription fails.
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
    this.#connectPromise = this.#connect();
  }

  #scheduleCheck(): void {
    const runCheck = (): void => {
      this.#nextCheck = undefined;
      void this.#checkSubscription();
    };
    if (!this.#isClosed) this.#nextCheck ??= systemClock.schedule(CHECK_MS, runCheck, { background: true });
  }

  async #checkSubscription(): Promise<void> {
    // No scheduled check is left out while a caller waits, or until a replaced client's subscription works again.
    const isUrgent = this.wakeUps.isAnyWaiting || this.#replacementReason !== undefined;
    if (!isUrgent && !this.connection.tracking.isPossible) return;
    const now = systemClock.now();
    if (isUrgent || now - this.#lastCheckAt >= TRACKING_CHECK_MS) {
      this.#lastCheckAt = now;
      const client = this.#client;
      if (client?.status !== 'ready') this.#replaceClient();
      else if (!isUrgent) await this.#confirmSubscription(client).catch((error) => this.#onFailure(client, error));
      else if (await this.#subscribe(client, undefined)) this.#replacementReason = undefined;
    }
    this.#scheduleCheck();
  }

  /** Waits for the answer, because until then the server may hand keys to this process. */
  async #unsubscribe(): Promise<void> {
    const channel = this.channelName;
    if (channel === undefined) return;
    const unsubscribePromise = this.#client?.call(`${this.#commandPrefix}unsubscribe`, channel).catch(() => undefined);
    if (unsubscribePromise) await isFulfilledWithin(systemClock, MAX_UNSUBSCRIBE_MS, unsubscribePromise);
  }

  /**
   * Resolves to whether the subscription works: the server has answered, and counts this process as a listener.
   * @param adviceOnSuccess advice for the health once the subscription works; `undefined` for none
   */
  async #subscribe(client: RedisClient, adviceOnSuccess: string | undefined): Promise<boolean> {
    const { health } = this.connection;
    try {
      if (!(await this.#confirmSubscription(client))) return false;
      if (this.channelName !== undefined && !this.isSharded && (await this.#countListeners(this.channelName)) === 0) {
        throw new Error('scripts on the server say that nobody has subscribed, as behind some proxies');
      }
      health.setAdvice('subscription', adviceOnSuccess);
      this.#setSubscribed(client, true);
      return true;
    } catch (error) {
      this.#onFailure(client, error);
      return false;
    }
  }

  /**
   * Sends SUBSCRIBE, which may be repeated. Resolves to whether the server has answered this client in time. Rejects
   * when the server refuses, or when the connection ends before the answer.
   */
  async #confirmSubscription(client: RedisClient): Promise<boolean> {
    const { health, timeoutMs } = this.connection;
    const subscribePromise =
      this.channelName === undefined
        ? client.call('subscribe', CHANGES_CHANNEL)
        : client.call(`${this.#commandPrefix}subscribe`, this.channelName);
    const isAnswered = await isFulfilledWithin(systemClock, timeoutMs, subscribePromise);
    if (client !== this.#client || this.#isClosed) return false;
    if (isAnswered) return true;
    this.#replacementReason = `the subscription gave no sign of life for ${timeoutMs} ms, and was replaced`;
    health.setAdvice('subscription', this.#replacementReason);
    this.#replaceClient();
    return false;
  }

  /**
   * Resolves to the number of listeners that a script on the server sees: scripts also publish the messages to waiters.
   * Resolves to `NaN` when the server refuses the script.
   */
  async #countListeners(channel: string): Promise<number> {
    const countPromise = this.connection.sendCommand('EVAL', COUNT_LISTENERS_SCRIPT, 1, channel, channel);
    const [, listenerCount] = await countPromise.then(asList).catch(() => []);
    return Number(listenerCount);
  }

  #onFailure(client: RedisClient, error: unknown): void {
    this.#reportError(error);
    this.#setSubscribed(client, false);
  }

  #reportError(error: unknown): void {
    const { message } = toLoggableError(error);
    const consequence = this.channelName === undefined ? NO_TRACKING_CONSEQUENCE : 'waiters have to poll';
    this.connection.health.setAdvice('subscription', `${consequence}, because the subscription failed: ${message}`);
  }

  #setSubscribed(client: RedisClient, isSubscribed: boolean): void {
    if (client !== this.#client || isSubscribed === this.#isSubscribed || this.#isClosed) return;
    this.#isSubscribed = isSubscribed;
    this.wakeUps.wakeAll();
  }
}
