import { EventEmitter } from 'node:events';
import type { RedisArgument, RedisClient } from '../connection/redis-client.js';
import { duplicateNodeRedis } from './node-redis.js';
import { callNodeRedis, LateWriteMonitor } from './node-redis-command.js';
import type { NodeRedisClient } from './node-redis-types.js';

const adapterByClient = new WeakMap<NodeRedisClient, GivenNodeRedis>();

/** Returns the adapter that all lock services on a client share: together they add one listener for each event. */
export function adaptNodeRedis(client: NodeRedisClient): RedisClient {
  const adapter = adapterByClient.get(client) ?? new GivenNodeRedis(client);
  adapterByClient.set(client, adapter);
  return adapter;
}

/** Adapter that gives the application's client of node-redis the interface of `RedisClient`. */
class GivenNodeRedis extends EventEmitter implements RedisClient {
  readonly isCluster = false;
  /** Empty prefix, because node-redis puts none before the keys of a command. */
  readonly options = { keyPrefix: '' };
  readonly #client: NodeRedisClient;
  readonly #lateWriteMonitor = new LateWriteMonitor();
  #wasReady = false;
  #hasEnded = false;

  constructor(client: NodeRedisClient) {
    super();
    this.#client = client;
  }

  get status(): string {
    const { isReady, isOpen, socketEpoch = 0 } = this.#client;
    if (isReady) return 'ready';
    if (isOpen) return 'connecting';
    // A client that has had no connection yet waits for its first `connect`.
    return this.#hasEnded || this.#wasReady || socketEpoch > 0 ? 'end' : 'wait';
  }

  get stream(): RedisClient['stream'] {
    return this.#lateWriteMonitor.stream;
  }

  call(command: string, ...args: RedisArgument[]): Promise<unknown> {
    const replyPromise = callNodeRedis(this.#client, command, ...args);
    this.#lateWriteMonitor.onCall();
    return replyPromise;
  }

  duplicate(): RedisClient {
    return duplicateNodeRedis(async () => this.#client);
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  /** Does nothing: only the application disconnects its client. */
  disconnect(): void {
    return undefined;
  }

  override on(event: string, listener: (...args: unknown[]) => void): this {
    if (this.eventNames().length === 0) {
      this.#wasReady = this.#client.isReady;
      for (const [name, onEvent] of this.#clientListeners) this.#client.on(name, onEvent);
    }
    return super.on(event, listener);
  }

  override off(event: string, listener: (...args: unknown[]) => void): this {
    super.off(event, listener);
    if (this.eventNames().length === 0) {
      for (const [name, onEvent] of this.#clientListeners) this.#client.off(name, onEvent);
    }
    return this;
  }

  readonly #onReady = (): void => {
    this.#wasReady = true;
    this.#hasEnded = false;
    this.emit('ready');
  };

  /** Ignores the errors that node-redis emits while the connection works. */
  readonly #emitCloseUnlessReady = (): void => {
    if (this.#client.isReady) return;
    this.emit('close');
  };

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    this.emit('end');
  };

  readonly #clientListeners = [
    ['connect', () => this.emit('connecting')],
    ['ready', this.#onReady],
    ['error', this.#emitCloseUnlessReady],
    ['reconnecting', this.#emitCloseUnlessReady],
    ['end', this.#onEnd],
  ] as const;
}
