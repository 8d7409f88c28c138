import { type Clock, systemClock, ReportedHealth } from '../../core/index.js';
import { Batch } from './batch.js';
import type { ClientSource, RedisArgument, RedisClient, RedisCommand } from './redis-client.js';
import { cleanError } from './redis-error.js';
import type { RedisRequest, RedisScript } from './redis-scripts.js';
import type { RedisServers } from './redis-servers.js';
import { evictionAdvice, replicationAdvice } from './server-advice.js';
import { SilenceWatch } from './silence-watch.js';

/** A handshake that takes longer is given up for a new connection: the old one may lead nowhere. */
const LONGEST_HANDSHAKE_MS = 5_000;

/**
 * Commands with a deadline of our own, whatever the client's settings and the server's state. A connection of ours on which an
 * answer is overdue is replaced, so that nothing that was given up runs late; a given client is only ever asked.
 */
export class RedisConnection implements RedisServers {
  readonly health = new ReportedHealth();
  readonly #source: ClientSource;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #opening: Promise<RedisClient> | undefined;
  #client: RedisClient | undefined;
  /** Whether commands can be sent; a given client may be asked at any time. */
  #ready = false;
  #closed = false;
  #advised = false;
  #connectingSince = 0;
  /** What goes out at the end of this turn. */
  #outbox: Batch | undefined;
  #lastError: Error | undefined;
  #endWatch: (() => void) | undefined;
  readonly #waiting = new Set<(error?: Error) => void>();
  readonly #silence: SilenceWatch;

  constructor(source: ClientSource, timeoutMs: number, clock: Clock = systemClock) {
    this.#source = source;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#silence = new SilenceWatch(clock, this.#onSilence);
    if (source.given) this.#attach(source.given);
  }

  async send(...command: RedisCommand): Promise<unknown> {
    const [reply] = await this.#sendAll([command]);
    return reply;
  }

  /** Never sends a script's source after the deadline of the call: the caller has freed the owner by then. */
  ask(_leaseKey: string, ...requests: readonly RedisRequest[]): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      const { dueAt } = this.#outgoing;
      this.#outgoing.add(requests.map(byName), resolve, (error) => {
        const isUnknown = error.message.startsWith('NOSCRIPT') && this.#clock.now() < dueAt;
        if (isUnknown) this.#outgoing.add(requests.map(bySource), resolve, reject);
        else reject(error);
      });
    });
  }

  async run(script: RedisScript, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown> {
    const [reply] = await this.ask('', script.call(keys, args));
    return reply;
  }

  /** Makes the client and begins to connect, so that loading it is not taken for silence. @throws LockConfigurationError */
  async prepare(): Promise<void> {
    if (this.#closed || this.#source.given) return;
    this.#opening ??= this.#open();
    await this.#opening;
  }

  groupOf(): number {
    return 0;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#endWatch?.();
    this.#settleWaiting(closedError());
    const client = await this.#opening?.catch(() => undefined);
    if (client) this.#cut(client);
    if (this.#source.given) this.#detach(this.#source.given);
  }

  #sendAll(commands: readonly RedisCommand[]): Promise<unknown[]> {
    return new Promise((resolve, reject) => this.#outgoing.add(commands, resolve, reject));
  }

  /** Sends in the order of the calls; those of one turn in one write. */
  get #outgoing(): Batch {
    if (this.#outbox) return this.#outbox;
    this.#outbox = new Batch(this.#clock.now() + this.#timeoutMs, this.#onOver);
    this.#silence.add(this.#outbox);
    process.nextTick(this.#deliver);
    return this.#outbox;
  }

  readonly #deliver = (): void => {
    const batch = this.#outbox;
    if (!batch) return;
    this.#outbox = undefined;
    const client = this.#ready || this.#source.given ? this.#client : undefined;
    if (client) batch.send(client);
    else void this.#sendWhenConnected(batch);
  };

  async #sendWhenConnected(batch: Batch): Promise<void> {
    try {
      batch.send(await this.#connected());
    } catch (error) {
      batch.fail(error);
    }
  }

  readonly #onOver = (batch: Batch, answered: boolean): void => {
    this.#silence.delete(batch);
    if (answered) this.#onAnswer();
  };

  async #connected(): Promise<RedisClient> {
    for (;;) {
      if (this.#closed) throw closedError();
      this.#opening ??= this.#open();
      await this.#opening;
      if (this.#client && this.#ready) return this.#client;
      await new Promise<void>((resolve, reject) => this.#waiting.add((error) => (error ? reject(error) : resolve())));
    }
  }

  async #open(): Promise<RedisClient> {
    const client = await this.#source.open();
    if (this.#closed) throw closedError();
    this.#endWatch ??= this.#source.watchMaster?.(this.health, this.#onSwitch);
    this.#attach(client);
    // What is wrong comes as an event too, and again with every new attempt.
    client.connect().catch(() => undefined);
    return client;
  }

  /** Makes a new connection at once, so that holders are told at once. What is under way on the old one fails. */
  #replace(): void {
    const old = this.#client;
    if (!old || this.#source.given) return;
    this.#client = undefined;
    this.#ready = false;
    this.#cut(old);
    this.#opening = this.#open();
    this.#opening.catch(() => undefined);
  }

  #attach(client: RedisClient): void {
    this.#client = client;
    this.#ready = client.status === 'ready';
    if (this.#ready) this.health.report('up');
    client.on('connecting', this.#onConnecting);
    client.on('ready', this.#onReady);
    client.on('close', this.#onClose);
    client.on('end', this.#onClose);
    if (!this.#source.given) client.on('error', this.#onError);
  }

  #detach(client: RedisClient): void {
    client.off('connecting', this.#onConnecting);
    client.off('ready', this.#onReady);
    client.off('close', this.#onClose);
    client.off('end', this.#onClose);
  }

  /** Ours only. The error listener stays: a dying socket may still complain. */
  #cut(client: RedisClient): void {
    this.#detach(client);
    client.disconnect();
  }

  readonly #onConnecting = (): void => {
    this.#connectingSince = this.#clock.now();
  };

  readonly #onReady = (): void => {
    this.#ready = true;
    this.#advised = false;
    this.#lastError = undefined;
    this.health.report('up');
    this.#settleWaiting();
  };

  readonly #onClose = (): void => {
    this.#ready = false;
    const error = this.#lastError ?? new Error('the connection is lost');
    this.health.report('down', error.message);
    this.#settleWaiting(error);
  };

  readonly #onSwitch = (): void => {
    this.health.report('down', 'another server has been made master');
    this.#replace();
  };

  readonly #onError = (error: unknown): void => {
    this.#lastError = cleanError(error);
  };

  readonly #onSilence = (overdue: Batch): void => {
    const why = this.#lastError && !this.#ready ? `: ${this.#lastError.message}` : '';
    const error = new Error(`no answer within ${this.#timeoutMs} ms${why}`);
    overdue.fail(error);
    this.health.report('down', error.message);
    const connecting = !this.#ready && this.#clock.now() - this.#connectingSince < LONGEST_HANDSHAKE_MS;
    if (!connecting && !this.#closed) this.#replace();
  };

  #onAnswer(): void {
    if (this.#closed) return;
    this.health.report('up');
    if (this.#advised) return;
    this.#advised = true;
    void this.#askForAdvice();
  }

  async #askForAdvice(): Promise<void> {
    try {
      const [memory, replication] = await this.#sendAll([
        ['INFO', 'memory'],
        ['INFO', 'replication'],
      ]);
      this.health.advise('eviction', evictionAdvice(String(memory)));
      this.health.advise('replication', replicationAdvice(String(replication)));
    } catch {
      // A user without the right to ask locks just as well.
    }
  }

  #settleWaiting(error?: Error): void {
    for (const settle of this.#waiting) settle(error);
    this.#waiting.clear();
  }
}

function byName(request: RedisRequest): RedisCommand {
  return 'byName' in request ? request.byName : request;
}

function bySource(request: RedisRequest): RedisCommand {
  return 'bySource' in request ? request.bySource() : request;
}

function closedError(): Error {
  return new Error('the backend is closed');
}
