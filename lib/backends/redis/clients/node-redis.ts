import { isIP } from 'node:net';
import type { Login, LoginSource } from '../access-options.js';
import type { RedisClient } from '../connection/redis-client.js';
import {
  getLoginWithRetries,
  type ClientMaker,
  CONNECT_TIMEOUT_MS,
  KEEP_ALIVE_AFTER_MS,
  rotate,
  type ServerLocation,
  withServerName,
} from './client-settings.js';
import { findMasterAddress } from './node-redis-sentinels.js';
import type { NodeRedisClient, NodeRedisOptions } from './node-redis-types.js';
import { type NodeRedisMaker, OwnNodeRedis } from './own-node-redis.js';

/**
 * Options of the backend's own clients. The offline queue would send commands late, and notices of maintenance would
 * hold commands back. All servers speak RESP2. The user may lack the right to send information on the client.
 */
const OWN_OPTIONS = {
  RESP: 2,
  disableOfflineQueue: true,
  disableClientInfo: true,
  maintNotifications: 'disabled',
} as const;

/** Options that replace those of the application's client in its duplicates. */
const DUPLICATE_OVERRIDES = {
  ...OWN_OPTIONS,
  url: undefined,
  name: undefined,
  readonly: false,
  pingInterval: undefined,
  commandsQueueMaxLength: undefined,
  commandOptions: {},
  clientSideCache: undefined,
  emitInvalidate: false,
};

const SOCKET_OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  keepAlive: true,
  keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
  reconnectStrategy: false,
} as const;

export async function importNodeRedis(): Promise<ClientMaker> {
  const { createClient } = await import('redis');
  return createNodeRedisClientMaker(createClient({ ...OWN_OPTIONS }));
}

/**
 * @param template client that is only duplicated, never connected: `createClient` needs milliseconds of work for each
 *   client, and `duplicate` does not
 */
export function createNodeRedisClientMaker(template: NodeRedisClient): ClientMaker {
  const duplicateTemplate = (location: ServerLocation, login: Login, signal: AbortSignal): NodeRedisClient =>
    template.duplicate(createClientOptions(location, login, signal));
  return {
    makeClient: (location, loginSource): RedisClient =>
      new OwnNodeRedis(
        async (signal, onError) => {
          const login = await getLoginWithRetries(loginSource, onError, () => signal.aborted);
          return duplicateTemplate(location, login ?? {}, signal);
        },
        { db: location.db },
      ),
    makeMasterClient: ({ db, tls, sentinels, ...location }, masterLoginSource, sentinelLoginSource) => {
      let attemptCount = 0;
      const makeClientOfMaster: NodeRedisMaker = async (signal, onError) => {
        const getLogin = (source: LoginSource) => getLoginWithRetries(source, onError, () => signal.aborted);
        const [login = {}, sentinelLogin = {}] = await Promise.all([
          getLogin(masterLoginSource),
          getLogin(sentinelLoginSource),
        ]);
        signal.throwIfAborted();
        const address = await findMasterAddress(
          { ...location, sentinels: rotate(sentinels, attemptCount++) },
          (sentinel, sentinelSignal) =>
            duplicateTemplate({ ...sentinel, tls: location.sentinelTls }, sentinelLogin, sentinelSignal),
        );
        return duplicateTemplate({ ...address, tls }, login, signal);
      };
      return new OwnNodeRedis(makeClientOfMaster, { db, mustBeMaster: true });
    },
  };
}

function createClientOptions(location: ServerLocation, login: Login, signal: AbortSignal) {
  const { host, port, family, tls } = location;
  const { username, password } = login;
  const address = { host, ...(port === undefined ? {} : { port }), ...(family === undefined ? {} : { family }) };
  const commonSocketOptions = { ...SOCKET_OPTIONS, ...address, signal };
  return {
    ...OWN_OPTIONS,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    socket: tls ? { ...withServerName(host, tls), ...commonSocketOptions, tls: true as const } : commonSocketOptions,
  };
}

/**
 * Returns the backend's own client with the address, login and TLS of the application's client.
 * @param findTemplate called for each connection; resolves to the client to duplicate
 * @param address address that replaces the one of the application's client
 */
export function duplicateNodeRedis(
  findTemplate: () => Promise<NodeRedisClient>,
  address?: { readonly host: string; readonly port: number },
): RedisClient {
  return new OwnNodeRedis(async (signal) => {
    const template = await findTemplate();
    return template.duplicate({
      ...DUPLICATE_OVERRIDES,
      socket: mergeSocketOptions(template.options, address, signal),
    });
  });
}

function mergeSocketOptions({ socket }: NodeRedisOptions = {}, address: object = {}, signal: AbortSignal): object {
  const { host, servername, tls, ...rest }: Partial<Record<string, unknown>> = { ...socket, ...address };
  const needsServerName = tls === true && typeof host === 'string' && isIP(host) === 0;
  return {
    ...rest,
    ...(host === undefined ? {} : { host }),
    ...(tls === undefined ? {} : { tls }),
    ...(servername !== undefined || needsServerName ? { servername: servername ?? host } : {}),
    ...SOCKET_OPTIONS,
    socketTimeout: undefined,
    signal,
  };
}
