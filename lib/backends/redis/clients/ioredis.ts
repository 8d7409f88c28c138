import type { RedisOptions } from 'ioredis';
import type { Login, LoginSource } from '../access-options.js';
import type { RedisClient } from '../connection/redis-client.js';
import {
  getLoginWithRetries,
  type ClientMaker,
  CONNECT_TIMEOUT_MS,
  createConnectionName,
  createReconnectRule,
  KEEP_ALIVE_AFTER_MS,
  type MasterLocation,
  reconnectDelayMs,
  readRole,
  selectDatabase,
  SENTINEL_TIMEOUT_MS,
  withServerName,
} from './client-settings.js';

const DISCONNECT_TIMEOUT_MS = 50;

/**
 * Options of the backend's own clients. The offline queue and retries are off: a command that waits in the client could
 * run after it was reported as failed.
 *
 * Automatic pipelines are off, because they treat `ssubscribe` as an ordinary command. `withConnectionCheck` replaces the
 * ready check. `KeyTracking` is written for RESP2, which all servers speak.
 */
const FIXED_OPTIONS = {
  lazyConnect: true,
  enableOfflineQueue: false,
  enableReadyCheck: true,
  maxRetriesPerRequest: 0,
  autoResubscribe: false,
  enableAutoPipelining: false,
  protocol: 2,
  keepAlive: KEEP_ALIVE_AFTER_MS,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  retryStrategy: reconnectDelayMs,
} as const;

export function createOwnClientOptions() {
  return { ...FIXED_OPTIONS, connectionName: createConnectionName(), reconnectOnError: createReconnectRule() };
}

/** Options of copies of a given client, whose `replyMapping` may need a newer protocol than that of `KeyTracking`. */
export function createDuplicateOptions() {
  return { ...createOwnClientOptions(), replyMapping: undefined };
}

type ReadyCheckCallback = (error: unknown, info?: object) => void;

/**
 * Replaces the ready check of ioredis, so that a client becomes ready only in its configured database, and under Sentinel
 * only at a master. With another role than `master`, ioredis connects again and asks the next Sentinel.
 *
 * ioredis itself uses database 0 when `SELECT` fails, for example on a busy server. The check of ioredis needs `INFO`,
 * which some servers do not have. With no check, ioredis 5 counts a connection that ended during its handshake as
 * ready, and never connects again: https://github.com/redis/ioredis/issues/2099
 */
export function withConnectionCheck<Client extends RedisClient>(client: Client): Client {
  const sendCommand: RedisClient['call'] = (...command) => client.call(...command);
  const { db = 0, sentinels } = client.options ?? {};
  const checkConnection = async (): Promise<object> => {
    await selectDatabase(db, sendCommand);
    return sentinels ? { role: await readRole(sendCommand) } : {};
  };
  Reflect.set(client, '_readyCheck', (onChecked: ReadyCheckCallback) => {
    checkConnection().then((info) => onChecked(undefined, info), onChecked);
  });
  return client;
}

type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

export async function importIoredis(): Promise<ClientMaker> {
  const { Redis } = await import('ioredis');

  /** Client that calls its login function again for each connection. */
  class LoginRedis extends Redis {
    #isDisconnected = false;

    constructor(
      options: ClientOptions,
      private readonly loginSource: () => Promise<Login>,
    ) {
      super(options);
    }

    override async connect(): Promise<void> {
      this.#isDisconnected = false;
      const onError = (error: unknown): void => void this.emit('error', error);
      const login = await getLoginWithRetries(this.loginSource, onError, () => this.#isDisconnected);
      if (!login) return;
      Object.assign(this.options, login);
      await super.connect();
    }

    override disconnect(reconnect = false): void {
      this.#isDisconnected = !reconnect;
      super.disconnect(reconnect);
    }
  }

  const makeClient = (location: ClientOptions, login: LoginSource): RedisClient => {
    const options = { ...createOwnClientOptions(), ...location };
    const client = typeof login === 'function' ? new LoginRedis(options, login) : new Redis({ ...options, ...login });
    return withConnectionCheck(client);
  };
  return {
    makeClient: ({ tls, ...location }, login) =>
      makeClient({ ...location, ...(tls && { tls: withServerName(location.host, tls) }) }, login),
    makeMasterClient: (location, login, sentinelLogin) =>
      makeClient(createMasterOptions(location), combineLogins(login, sentinelLogin)),
  };
}

function createMasterOptions({ name, db, natMap, tls, sentinels, sentinelTls }: MasterLocation): ClientOptions {
  return {
    name,
    ...(db === undefined ? {} : { db }),
    ...(natMap === undefined ? {} : { natMap }),
    ...(tls === undefined ? {} : { tls }),
    enableTLSForSentinelMode: tls !== undefined,
    sentinels: [...sentinels],
    ...(sentinelTls === undefined ? {} : { sentinelTLS: sentinelTls }),
    connectTimeout: SENTINEL_TIMEOUT_MS,
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    // ioredis stops connecting for good when this function returns no delay.
    sentinelRetryStrategy: reconnectDelayMs,
  };
}

function combineLogins(login: LoginSource, sentinelLogin: LoginSource): LoginSource {
  const combine = (masterLogin: Login, { username, password }: Login) => ({
    ...masterLogin,
    sentinelUsername: username,
    sentinelPassword: password,
  });
  if (typeof login !== 'function' && typeof sentinelLogin !== 'function') return combine(login, sentinelLogin);
  return async () => combine(...(await Promise.all([resolveLogin(login), resolveLogin(sentinelLogin)])));
}

export async function resolveLogin(login: LoginSource): Promise<Login> {
  return typeof login === 'function' ? login() : login;
}
