import { randomInt, randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import type { RedisOptions } from 'ioredis';
import { importClient, pause, systemClock } from '../../../core/index.js';
import type { Login, LoginSource, RedisTls } from '../access-options.js';
import { isErrorReply, isReadOnlyError } from '../error.js';
import type { RedisClient } from './redis-client.js';

const MAX_RECONNECT_DELAY_MS = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;
const DISCONNECT_TIMEOUT_MS = 50;
/** Pause after a login that could not be asked for. */
const LOGIN_RETRY_MS = 500;
/** Idle time before the system probes a connection. Firewalls drop connections that are idle for minutes. */
const KEEP_ALIVE_AFTER_MS = 10_000;

/** Returns a random delay, which doubles with each attempt to connect. */
export function reconnectDelayMs(attempt: number): number {
  const delayMs = Math.min(20 * 2 ** attempt, MAX_RECONNECT_DELAY_MS);
  return delayMs / 2 + randomInt(Math.ceil(delayMs / 2) + 1);
}

/**
 * Options of the backend's own clients. A command is sent now or fails now: one that waited in the client would run
 * after its caller was told that it failed. Hence the offline queue and retries are off.
 *
 * A connection to a server that has become a replica is replaced: the name of the server may lead to the master by now.
 * Automatic pipelines are off, because they treat `ssubscribe` as an ordinary command. `withDatabaseCheck` replaces the
 * ready check.
 */
export const OWN_CLIENT_OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  enableReadyCheck: true,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  enableAutoPipelining: false,
  keepAlive: KEEP_ALIVE_AFTER_MS,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  connectionName: 'nestjs-distributed-lock',
  retryStrategy: reconnectDelayMs,
  reconnectOnError: isReadOnlyError,
};

interface ServerLocation {
  readonly host?: string;
  readonly port?: number;
  readonly tls?: ConnectionOptions | undefined;
}

/**
 * Makes a client of ioredis that is not connected yet.
 * @param location options of ioredis
 * @param option option of the backend that needs ioredis, for errors
 * @throws LockConfigurationError when ioredis is not installed
 */
export async function makeOwnClient(
  location: ServerLocation,
  login: LoginSource,
  option: string,
): Promise<RedisClient> {
  const clientPackage = { name: 'ioredis, version 5 or 6', install: 'ioredis' };
  const createClient = await importClient(loadClientMaker, {
    ...clientPackage,
    neededBy: `redis({ ${option} })`,
    option,
  });
  const { host, tls } = location;
  const namedTls = host !== undefined && tls ? { tls: withServerName(host, tls) } : {};
  // A unique name proves that a connection on the server belongs to this client.
  const connectionName = `${OWN_CLIENT_OPTIONS.connectionName}:${randomUUID()}`;
  return withDatabaseCheck(createClient({ ...OWN_CLIENT_OPTIONS, connectionName, ...location, ...namedTls }, login));
}

export function tlsOptions(tls: RedisTls | undefined): ConnectionOptions | undefined {
  return tls === true ? {} : tls === false ? undefined : tls;
}

/**
 * Adds the name by which a server chooses its certificate, which neither Node nor ioredis adds. An IP address is not
 * allowed as a name: https://www.rfc-editor.org/rfc/rfc6066#section-3
 */
function withServerName(host: string, tls: ConnectionOptions): ConnectionOptions {
  return isIP(host.replace(/^\[|\]$/gu, '')) === 0 ? { servername: host, ...tls } : tls;
}

/** Tells a client of ioredis the `INFO` of the server, or the error that makes the connection useless. */
type ReadyCheckCallback = (error: unknown, info?: object) => void;

/**
 * Replaces the ready check of a client: it is ready when its server has selected the client's database. The client is
 * returned.
 *
 * ioredis goes on in database 0 when `SELECT` fails, for example on a busy server. Other processes would hold the same
 * keys in another database. The check of ioredis needs `INFO`, which some servers do not have. Without any check version
 * 5 treats a connection that ended during its handshake as ready, and never makes another one:
 * https://github.com/redis/ioredis/issues/2099
 */
export function withDatabaseCheck<Client extends RedisClient>(client: Client): Client {
  const check = async (onChecked: ReadyCheckCallback): Promise<void> => {
    const { db = 0 } = client.options ?? {};
    try {
      // The name is in lower case, because ioredis sends only that one before the client is ready.
      await client.call('select', db);
    } catch (error) {
      // A user of database 0 may lack the right to SELECT it, and needs no SELECT.
      if (db !== 0 || !isErrorReply(error) || error.message.startsWith('NOAUTH')) return onChecked(error);
    }
    onChecked(undefined, {});
  };
  Reflect.set(client, '_readyCheck', (onChecked: ReadyCheckCallback) => void check(onChecked));
  return client;
}

type ClientOptions = Omit<RedisOptions, 'replyMapping'>;
type ClientMaker = (options: ClientOptions, login: LoginSource) => RedisClient;

let loadingClientMaker: Promise<ClientMaker> | undefined;

/** Loads ioredis once. Rejects when it is not installed; the next call tries again. */
function loadClientMaker(): Promise<ClientMaker> {
  loadingClientMaker ??= importClientMaker().catch((error: unknown) => {
    loadingClientMaker = undefined;
    throw error;
  });
  return loadingClientMaker;
}

async function importClientMaker(): Promise<ClientMaker> {
  const { Redis } = await import('ioredis');

  /** A client that asks for its login before each attempt to connect. */
  class LoginRedis extends Redis {
    #isDisconnected = false;

    constructor(
      options: ClientOptions,
      private readonly askForLogin: () => Promise<Login>,
    ) {
      super(options);
    }

    override async connect(): Promise<void> {
      this.#isDisconnected = false;
      while (!this.#isDisconnected) {
        try {
          Object.assign(this.options, await this.askForLogin());
          break;
        } catch (error) {
          this.emit('error', error);
          await pause(systemClock, LOGIN_RETRY_MS, { background: true });
        }
      }
      if (!this.#isDisconnected) await super.connect();
    }

    override disconnect(reconnect = false): void {
      this.#isDisconnected = !reconnect;
      super.disconnect(reconnect);
    }
  }

  return (options, login) =>
    typeof login === 'function' ? new LoginRedis(options, login) : new Redis({ ...options, ...login });
}
