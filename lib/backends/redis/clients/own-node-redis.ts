import { EventEmitter } from 'node:events';
import { pause, systemClock } from '../../../core/index.js';
import type { RedisArgument, RedisClient } from '../connection/redis-client.js';
import { isErrorReply } from '../error.js';
import { CHANGES_CHANNEL } from '../connection/key-tracking.js';
import {
  createConnectionName,
  createReconnectRule,
  readRole,
  reconnectDelayMs,
  selectDatabase,
} from './client-settings.js';
import { callNodeRedis, LateWriteMonitor } from './node-redis-command.js';
import type { NodeRedisClient } from './node-redis-types.js';

/**
 * Function that makes a client of node-redis. The client is not connected yet, and never reconnects.
 * @param signal ends the client's socket in any state
 * @param onError called with each error of the login function, which is called again after a pause
 */
export type NodeRedisMaker = (signal: AbortSignal, onError: (error: unknown) => void) => Promise<NodeRedisClient>;

/** Demands that a connection must meet to become ready. */
interface ServerDemands {
  /** @default 0 */
  readonly db?: number | undefined;
  /** @default false */
  readonly mustBeMaster?: boolean;
}

const PUB_SUB_METHODS = {
  subscribe: 'subscribe',
  unsubscribe: 'unsubscribe',
  ssubscribe: 'sSubscribe',
  sunsubscribe: 'sUnsubscribe',
} as const;

type PubSubCommand = keyof typeof PUB_SUB_METHODS;

/**
 * Client of the backend that uses a new client of node-redis for each connection. If a client of node-redis reconnects
 * by itself, it keeps its old address and login, and sends commands that were queued meanwhile. Version 5 may also
 * open two connections when one ends in its handshake: https://github.com/redis/node-redis/issues/2443
 */
export class OwnNodeRedis extends EventEmitter implements RedisClient {
  readonly isCluster = false;
  readonly options: { readonly connectionName: string; readonly db: number; readonly mustBeMaster: boolean };
  /** Private, because printing a service must not print the password that this function has. */
  readonly #makeClient: NodeRedisMaker;
  #status: 'wait' | 'connecting' | 'ready' | 'reconnecting' | 'end' = 'wait';
  /** `undefined` while the connection is not ready. */
  #client: NodeRedisClient | undefined;
  /** Ends the present connection, even one that is being made, and the pause before the next connection. */
  #abortController = new AbortController();
  #endConnection = (): void => undefined;
  readonly #lateWriteMonitor = new LateWriteMonitor();
  readonly #shouldReconnect = createReconnectRule();
  readonly #channels = new Set<string>();
  #attemptCount = 0;

  constructor(makeClient: NodeRedisMaker, { db = 0, mustBeMaster = false }: ServerDemands = {}) {
    super();
    this.#makeClient = makeClient;
    this.options = { connectionName: createConnectionName(), db, mustBeMaster };
  }

  get status(): string {
    return this.#status;
  }

  get serverAddress(): RedisClient['serverAddress'] {
    return this.#client?.options?.socket;
  }

  get stream(): RedisClient['stream'] {
    return this.#lateWriteMonitor.stream;
  }

  call(command: string, ...args: RedisArgument[]): Promise<unknown> {
    const client = this.#client;
    if (!client) return Promise.reject(new Error('the connection is lost'));
    const name = command.toLowerCase();
    if (isPubSubCommand(name)) return this.#callPubSub(client, name, String(args[0]));
    const replyPromise = callNodeRedis(client, command, ...args);
    this.#lateWriteMonitor.onCall();
    replyPromise.catch((error: unknown) => {
      if (client === this.#client && isErrorReply(error) && this.#shouldReconnect(error)) this.#endConnection();
    });
    return replyPromise;
  }

  duplicate(): RedisClient {
    return new OwnNodeRedis(this.#makeClient, this.options);
  }

  async connect(): Promise<void> {
    if (this.#status === 'wait') void this.#keepConnected();
  }

  disconnect(): void {
    this.#status = 'end';
    this.#client = undefined;
    this.#endConnection();
    this.#abortController.abort();
  }

  async #keepConnected(): Promise<void> {
    while (!this.#isEnded) {
      this.#status = 'connecting';
      this.emit('connecting');
      await this.#connectAndAwaitEnd().then(this.#reportError, this.#reportError);
      this.#client = undefined;
      this.#channels.clear();
      if (this.#isEnded) break;
      this.#status = 'reconnecting';
      this.emit('close');
      this.#attemptCount += 1;
      this.#abortController = new AbortController();
      await pause(systemClock, reconnectDelayMs(this.#attemptCount), { signal: this.#abortController.signal });
    }
    this.emit('end');
  }

  get #isEnded(): boolean {
    return this.#status === 'end';
  }

  /** Resolves when the connection has ended: to its error, or to `undefined` for none. */
  async #connectAndAwaitEnd(): Promise<unknown> {
    const abortController = this.#abortController;
    const client = await this.#makeClient(abortController.signal, this.#reportError);
    // The login is known, and the handshake begins: this second event restarts the time-out for a connection.
    if (!this.#isEnded) this.emit('connecting');
    this.#endConnection = () => endNodeRedis(client, abortController);
    const connectionEndPromise = new Promise<unknown>((resolve) => {
      client.on('end', () => resolve(undefined));
      // The listener stays, because a closing socket may still fail.
      client.on('error', (error) => {
        resolve(error);
        endNodeRedis(client, abortController);
      });
    });
    client.on('sharded-channel-moved', (channel) => this.#channels.delete(String(channel)));
    try {
      if (abortController.signal.aborted) return undefined;
      const isReady = await Promise.race([
        connectionEndPromise.then(() => false),
        this.#connectAndCheck(client).then(() => true),
      ]);
      if (isReady) this.#onReady(client);
      return await connectionEndPromise;
    } finally {
      this.#endConnection();
    }
  }

  async #connectAndCheck(client: NodeRedisClient): Promise<void> {
    await client.connect();
    const { connectionName, db, mustBeMaster } = this.options;
    const sendCommand: RedisClient['call'] = (command, ...args) => callNodeRedis(client, command, ...args);
    await selectDatabase(db, sendCommand);
    if (mustBeMaster && (await readRole(sendCommand)) === 'slave')
      throw new Error('the server that a Sentinel named as master is a replica');
    // A user may lack the right to SETNAME. With the option `name` of node-redis, the whole connection would fail then.
    callNodeRedis(client, 'CLIENT', 'SETNAME', connectionName).catch(() => undefined);
  }

  #onReady(client: NodeRedisClient): void {
    if (this.#isEnded) return;
    this.#client = client;
    this.#attemptCount = 0;
    this.#status = 'ready';
    this.emit('ready');
  }

  async #callPubSub(client: NodeRedisClient, command: PubSubCommand, channel: string): Promise<unknown> {
    if (command === 'unsubscribe' || command === 'sunsubscribe') {
      this.#channels.delete(channel);
      return client[PUB_SUB_METHODS[command]](channel);
    }
    // Callers subscribe again to test the connection. node-redis would send nothing then, so a PING is sent.
    if (this.#channels.has(channel))
      return callNodeRedis(client, 'PING').catch((error: unknown) => {
        if (!isErrorReply(error)) throw error;
      });
    const event = channel === CHANGES_CHANNEL ? 'messageBuffer' : command === 'subscribe' ? 'message' : 'smessage';
    const onMessage = (message: unknown): void => void this.emit(event, channel, message);
    await client[PUB_SUB_METHODS[command]](channel, onMessage);
    this.#channels.add(channel);
    return undefined;
  }

  readonly #reportError = (error: unknown): void => {
    if (error !== undefined && !this.#isEnded && this.listenerCount('error') > 0) this.emit('error', error);
  };
}

function isPubSubCommand(name: string): name is PubSubCommand {
  return Object.hasOwn(PUB_SUB_METHODS, name);
}

/**
 * Ends a client at once. The signal of `abortController` must be an option of the client's socket: `destroy` does not
 * end a socket that is still connecting.
 */
export function endNodeRedis(client: NodeRedisClient, abortController: AbortController): void {
  try {
    client.destroy();
  } catch {
    // Version 5 throws when the client is already closed.
  }
  abortController.abort();
}
