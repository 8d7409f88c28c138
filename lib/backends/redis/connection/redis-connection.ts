import { randomInt } from 'node:crypto';
import {
  type Clock,
  isLockError,
  LockConfigurationError,
  NotSentError,
  pause,
  replyTimeout,
  ReportedHealth,
  systemClock,
} from '../../../core/index.js';
import { cleanError, isCrossSlot, isReply, isUnknownDatabase } from '../error.js';
import { listenTo } from './client-events.js';
import { CommandWindow } from './command-window.js';
import { FormerConnection } from './former-connection.js';
import { slotOf } from './key-slot.js';
import type { ClientSource, RedisClient, RedisCommand } from './redis-client.js';
import type { RedisServers } from './redis-servers.js';
import { askForAdvice, SLOTS_ADVICE } from './server-advice.js';

/** A handshake that takes longer is abandoned for a new connection: the old one may lead nowhere. */
const LONGEST_HANDSHAKE_MS = 5_000;
/** A time-out below this leaves no time to try a connection and to make another one. */
const LEAST_TIMEOUT_TO_TRY_MS = 500;

/**
 * Commands fail in a bounded time, whatever the client's settings and the server's state. A command that was not sent
 * by then never is. One that was sent may run late, also after its connection was replaced. An own connection is
 * replaced when it is silent. A given client is never cut, and gets nothing while it or its server is not ready.
 */
export class RedisConnection extends CommandWindow implements RedisServers {
  readonly health = new ReportedHealth();
  readonly #source: ClientSource;
  #opening: Promise<RedisClient> | undefined;
  /** Whether the client is connected, as far as it knows. */
  #ready = false;
  #closed = false;
  #advised = false;
  readonly #former: FormerConnection;
  #isAwaitingSign = false;
  /** Why the present connection can never be used. */
  #misfit: LockConfigurationError | undefined;
  #connectingSince = 0;
  #lastError: Error | undefined;
  #endWatch: (() => void) | undefined;
  #stopListening: () => void = () => undefined;

  constructor(
    source: ClientSource,
    timeoutMs: number,
    clock: Clock = systemClock,
    groupOf?: (leaseKey: string) => number,
  ) {
    super(timeoutMs, clock, groupOf);
    this.#source = source;
    this.#former = new FormerConnection(clock, timeoutMs / 2);
    if (source.given) this.#attach(source.given);
  }

  /** Not connected yet. */
  openSubscriber(): Promise<RedisClient> {
    return this.#source.openSubscriber?.() ?? this.#source.open();
  }

  send(...command: RedisCommand): Promise<unknown> {
    return this.ask('', { requests: [command], read: ([reply]) => reply });
  }

  get keyPrefix(): string {
    return this.#source.given?.options?.keyPrefix ?? '';
  }

  async shards(): Promise<readonly [this]> {
    return [this];
  }

  async prepare(): Promise<void> {
    if (!this.#closed && !this.#source.given) await this.#connect();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#endWatch?.();
    this.shut();
    this.failWaiting(closedError());
    const client = await this.#opening?.catch(() => undefined);
    if (client) this.#cut(client);
    if (this.#source.given) this.#stopListening();
  }

  protected override onNeed(): void {
    const { given } = this.#source;
    if (this.#closed) this.failWaiting(closedError());
    else if (this.#misfit) this.failWaiting(this.#misfit);
    else if (!given) this.#connect().catch(() => undefined);
    else if (given.status === 'wait') given.connect().catch(() => undefined);
    else if (given.status === 'end')
      this.failWaiting(new NotSentError('Connection is closed: the given client was ended'));
  }

  protected override onSign(answered: boolean): void {
    if (this.#closed) return;
    if (this.#ready && !this.isOpen) this.open();
    if (!answered) return;
    this.health.report('up');
    if (this.#advised) return;
    this.#advised = true;
    this.#learnAboutServer();
  }

  /** Questions that come meanwhile have half the time left for another connection. */
  protected override onIdle(): void {
    const client = this.client;
    if (!client || this.#source.given || this.timeoutMs < LEAST_TIMEOUT_TO_TRY_MS) return;
    this.shut();
    const onDead = (): void => {
      if (client === this.client && !this.#closed) this.#replace('the connection has died while it was idle');
    };
    const alarm = replyTimeout(this.clock, this.timeoutMs / 2, onDead, { background: true });
    const onAnswer = (): void => {
      alarm.cancel();
      if (client === this.client && this.#ready) this.open();
    };
    client.call('PING').then(onAnswer, onAnswer);
  }

  protected override onSilence(): void {
    const error = this.#noAnswer();
    this.failUnderWay(error);
    if (this.#source.given) {
      this.shut();
      void this.#awaitSign(this.#source.given);
    }
    this.#replace(error.message);
  }

  /**
   * Asks a silent given client for a sign of life, once in `timeoutMs`, until the window is open. Nothing else would
   * open it: late answers do not come where the client's `commandTimeout` has given their commands up.
   */
  async #awaitSign(given: RedisClient): Promise<void> {
    if (this.#isAwaitingSign) return;
    this.#isAwaitingSign = true;
    while (!this.isOpen && this.#ready && !this.#closed) {
      const isAnswered = await given.call('PING').then(() => true, isReply);
      if (isAnswered && !this.isOpen) this.onHeard(true);
      if (!this.isOpen) await pause(this.clock, this.timeoutMs, { background: true });
    }
    this.#isAwaitingSign = false;
  }

  /** @internal */
  override onErrorReply(error: Error): void {
    if (!isCrossSlot(error) || this.groupOf) return;
    this.groupOf = (leaseKey) => slotOf(this.keyPrefix + leaseKey);
    this.health.advise('slots', SLOTS_ADVICE);
  }

  protected override onStall(): void {
    const error = this.#noAnswer();
    this.failWaiting(new NotSentError(error.message), this.clock.now());
    const connecting = !this.#ready && this.clock.now() - this.#connectingSince < LONGEST_HANDSHAKE_MS;
    if (connecting) this.health.report('down', error.message);
    else this.#replace(error.message);
  }

  #noAnswer(): Error {
    const why = this.#lastError && !this.#ready ? `: ${this.#lastError.message}` : '';
    return new Error(`no answer within ${this.timeoutMs} ms${why}`);
  }

  /** When no client can be made, all that waits fails with the reason. The next question tries again. */
  #connect(delayMs = 0): Promise<RedisClient> {
    if (this.#opening) return this.#opening;
    const opening = this.#open(delayMs);
    this.#opening = opening;
    opening.catch((error: unknown) => {
      if (this.#opening === opening) this.#opening = undefined;
      this.failWaiting(isLockError(error) ? error : new NotSentError(cleanError(error).message));
    });
    return opening;
  }

  async #open(delayMs: number): Promise<RedisClient> {
    if (delayMs > 0) await pause(this.clock, delayMs, { background: true });
    if (this.#closed) throw closedError();
    const client = await this.#source.open();
    if (this.#closed) throw closedError();
    // To load a client for the first time takes a busy machine long, and is no silence of the server.
    if (!this.isOpen) this.shut();
    const onSwitch = (): void => this.#replace('another server has been made master');
    this.#endWatch ??= this.#source.watchMaster?.(this.health, onSwitch);
    this.#attach(client);
    // Failures come as events too, and again with every new attempt.
    client.connect().catch(() => undefined);
    return client;
  }

  /** Connects anew soon; not at once, because all processes may do so now. Commands under way fail. */
  #replace(trouble: string): void {
    this.health.report('down', trouble);
    const old = this.client;
    if (!old || this.#closed || this.#source.given) return;
    this.client = undefined;
    this.#ready = false;
    this.shut();
    this.#cut(old);
    this.#opening = undefined;
    this.#connect(randomInt(Math.ceil(this.timeoutMs / 10) + 1)).catch(() => undefined);
  }

  #attach(client: RedisClient): void {
    this.client = client;
    // It may have to ask for its login first.
    this.#connectingSince = this.clock.now();
    this.#stopListening = listenTo(client, this.#listeners);
    if (!this.#source.given) client.on('error', (error) => this.#onError(error, client.options?.db));
    if (client.status === 'ready') this.#onReady();
  }

  /** Never a given client. The error listener stays: a dying socket may still complain. */
  #cut(client: RedisClient): void {
    this.#stopListening();
    client.disconnect();
  }

  readonly #onReady = (): void => {
    this.#ready = true;
    this.#advised = false;
    this.#lastError = undefined;
    this.#misfit = undefined;
    const { client } = this;
    if (client && this.#former.isKnown) void this.#openAfterFormer(client);
    else this.#openWindow();
  };

  async #openAfterFormer(client: RedisClient): Promise<void> {
    await this.#former.end(client);
    if (client === this.client && this.#ready && !this.#closed) this.#openWindow();
  }

  /** A server that has no such database never will: whoever asks is told so. Other errors may pass. */
  #onError(error: unknown, db = 0): void {
    this.#lastError = cleanError(error);
    if (!isUnknownDatabase(this.#lastError)) return;
    const { message } = this.#lastError;
    this.#misfit = new LockConfigurationError(`db ${db} is no database of this server: ${message}`, 'db');
    this.health.report('down', this.#misfit.message);
    this.failWaiting(this.#misfit);
  }

  #openWindow(): void {
    this.health.report('up');
    this.open();
  }

  readonly #onClose = (): void => {
    this.#ready = false;
    this.#connectingSince = this.clock.now();
    this.shut();
    const { message } = this.#lastError ?? new Error('the connection is lost');
    this.health.report('down', message);
    this.failWaiting(new NotSentError(message));
  };

  readonly #listeners = {
    connecting: (): void => void (this.#connectingSince = this.clock.now()),
    ready: this.#onReady,
    close: this.#onClose,
    end: this.#onClose,
  };

  #learnAboutServer(): void {
    const { client } = this;
    const send = (...command: RedisCommand): Promise<unknown> => this.send(...command);
    if (client && !this.#source.given) void this.#former.learn(client, send);
    void askForAdvice(send, this.health);
  }
}

function closedError(): Error {
  return new Error('the backend is closed');
}
