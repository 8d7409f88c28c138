import { type Clock, systemClock, ReportedHealth } from '../../core/index.js';
import type { ClientSource, RedisArgument, RedisClient, RedisCommand } from './redis-client.js';
import { cleanError } from './redis-error.js';
import type { RedisRequest, RedisScript } from './redis-scripts.js';
import type { RedisServers } from './redis-servers.js';
import { evictionAdvice, replicationAdvice } from './server-advice.js';

/** Commands that are answered together. */
interface Pending {
  readonly commands: readonly RedisCommand[];
  readonly resolve: (replies: unknown[]) => void;
  readonly reject: (error: Error) => void;
}

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
  #outbox: Pending[] = [];
  #lastError: Error | undefined;
  #endWatch: (() => void) | undefined;
  readonly #waiting = new Set<(error?: Error) => void>();

  constructor(source: ClientSource, timeoutMs: number, clock: Clock = systemClock) {
    this.#source = source;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    if (source.given) this.#attach(source.given);
  }

  async send(...command: RedisCommand): Promise<unknown> {
    const [reply] = await this.#sendAll([command]);
    return reply;
  }

  /** Never sends a script's source after the deadline of the call: the caller has freed the owner by then. */
  async ask(_leaseKey: string, ...requests: readonly RedisRequest[]): Promise<unknown[]> {
    const giveUpAt = this.#clock.now() + this.#timeoutMs;
    try {
      return await this.#sendAll(requests.map((request) => ('byName' in request ? request.byName : request)));
    } catch (error) {
      const unknown = error instanceof Error && error.message.startsWith('NOSCRIPT');
      if (!unknown || this.#clock.now() >= giveUpAt) throw error;
      return this.#sendAll(requests.map((request) => ('bySource' in request ? request.bySource() : request)));
    }
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

  /** Sends in the order of the calls; those of one turn in one write. Rejects with an error that may be logged. */
  #sendAll(commands: readonly RedisCommand[]): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      this.#outbox.push({ commands, resolve, reject });
      if (this.#outbox.length === 1) queueMicrotask(() => void this.#deliver());
    });
  }

  async #deliver(): Promise<void> {
    const batch = this.#outbox;
    this.#outbox = [];
    let overdue = false;
    // After a blocked event loop timers come before the answers that have arrived meanwhile: those are read first.
    let answered = false;
    const timer = this.#clock.schedule(this.#timeoutMs, () => {
      setImmediate(() => {
        if (answered) return;
        overdue = true;
        this.#onSilence(batch);
      });
    });
    try {
      const client = this.#client && (this.#ready || this.#source.given) ? this.#client : await this.#connected();
      const heard = !overdue && (await exchange(client, batch));
      if (heard && !overdue) this.#onAnswer();
    } catch (error) {
      for (const { reject } of batch) reject(cleanError(error));
    } finally {
      answered = true;
      timer.cancel();
    }
  }

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

  #onSilence(batch: readonly Pending[]): void {
    const why = this.#lastError && !this.#ready ? `: ${this.#lastError.message}` : '';
    const error = new Error(`no answer within ${this.#timeoutMs} ms${why}`);
    for (const { reject } of batch) reject(error);
    this.health.report('down', error.message);
    const connecting = !this.#ready && this.#clock.now() - this.#connectingSince < LONGEST_HANDSHAKE_MS;
    if (!connecting && !this.#closed) this.#replace();
  }

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

/** Sends all in one write, which ioredis' own pipelines do at several times the cost. Resolves to whether anything was answered. */
async function exchange(client: RedisClient, batch: readonly Pending[]): Promise<boolean> {
  const { stream } = client;
  stream?.cork();
  const heard = batch.map((pending) => fulfil(client, pending));
  stream?.uncork();
  return (await Promise.all(heard)).includes(true);
}

/** Resolves each to its own answers, or rejects it with the first failure among them. */
async function fulfil(client: RedisClient, { commands, resolve, reject }: Pending): Promise<boolean> {
  try {
    const [only] = commands;
    if (commands.length === 1 && only) resolve([await client.call(...only)]);
    else resolve(await Promise.all(commands.map((command) => client.call(...command))));
    return true;
  } catch (error) {
    reject(cleanError(error));
    return false;
  }
}

function closedError(): Error {
  return new Error('the backend is closed');
}
