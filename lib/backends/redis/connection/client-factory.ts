import { randomInt, randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { type Given, importClient } from '../../../core/index.js';
import {
  loginBy,
  loginOf,
  type LoginSource,
  type RedisCredentials,
  type RedisHostOptions,
  type RedisLoginOptions,
  type RedisTls,
} from '../access-options.js';
import { isReadOnly } from '../error.js';
import { readRedisUrl } from '../redis-url.js';
import { type ClientMaker, loadClientMaker } from './client-maker.js';
import { checkingDatabase } from './ready-check.js';
import type { ClientSource, RedisClient } from './redis-client.js';

const LONGEST_RECONNECT_DELAY_MS = 1_000;
const CONNECT_TIMEOUT_MS = 5_000;
const DISCONNECT_TIMEOUT_MS = 50;

export function reconnectDelay(attempt: number): number {
  const delay = Math.min(20 * 2 ** attempt, LONGEST_RECONNECT_DELAY_MS);
  return delay / 2 + randomInt(Math.ceil(delay / 2) + 1);
}

/** Firewalls and load balancers forget connections that are idle for minutes. The system's probes prevent that. */
const KEEP_ALIVE_AFTER_MS = 10_000;

/**
 * No offline queue, and no retry: a command goes out now or fails now. One that waited in the client would run after
 * its caller was told that it failed. A server that has become a replica is left: its name may lead to the master by
 * now. No automatic pipelines, which take `ssubscribe` for an ordinary command. The ready check is that of
 * `checkingDatabase`; a server that is loading says so by itself.
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
  retryStrategy: reconnectDelay,
  reconnectOnError: isReadOnly,
};

/** Makes connections to the server of a URL. */
export function urlSource(url: string, { credentials, tls }: RedisLoginOptions = {}): ClientSource {
  const { isTls, username, password, ...location } = readRedisUrl('url', url);
  const login = loginBy('credentials', credentials, { username, password });
  return { open: () => makeClient({ ...location, tls: tlsOptions(tls ?? isTls) }, login, 'url') };
}

/** Makes connections to a server that is described by its parts. */
export function hostSource({ host, port, db, tls, ...secrets }: RedisHostOptions): ClientSource {
  const parts = { host, ...(port === undefined ? {} : { port }), ...(db === undefined ? {} : { db }) };
  return { open: () => makeClient({ ...parts, tls: tlsOptions(tls) }, loginOf(secrets), 'host') };
}

/** Uses a given client, and makes a connection like it for the subscription. */
export function givenSource(client: RedisClient): ClientSource {
  return {
    given: client,
    open: async () => client,
    openSubscriber: async () => checkingDatabase(client.duplicate(OWN_CLIENT_OPTIONS)),
  };
}

interface Whereabouts {
  readonly host?: string;
  readonly port?: number;
  readonly tls?: ConnectionOptions | undefined;
}

/** @param where options of ioredis @throws LockConfigurationError when ioredis is not installed */
export async function makeClient(where: Whereabouts, login: LoginSource, option: string): Promise<RedisClient> {
  const make = await importRedis(option);
  const { host, tls } = where;
  const named = host !== undefined && tls ? { tls: tlsTo(host, tls) } : {};
  // A name of its own proves to us that a connection on the server is this client's.
  const connectionName = `${OWN_CLIENT_OPTIONS.connectionName}:${randomUUID()}`;
  return checkingDatabase(make({ ...OWN_CLIENT_OPTIONS, connectionName, ...where, ...named }, login));
}

/** The same for a server that other servers have named. */
export function makeNodeClient(
  where: Whereabouts,
  credentials: Given<RedisCredentials> | undefined,
  option: string,
): Promise<RedisClient> {
  return makeClient(where, loginBy('credentials', credentials), option);
}

export function tlsOptions(tls: RedisTls | undefined): ConnectionOptions | undefined {
  return tls === true ? {} : tls === false ? undefined : tls;
}

/**
 * Adds the name by which a server chooses its certificate. Neither Node nor ioredis does, and addresses are no names:
 * https://www.rfc-editor.org/rfc/rfc6066#section-3
 */
function tlsTo(host: string, tls: ConnectionOptions): ConnectionOptions {
  return isIP(host.replace(/^\[|\]$/gu, '')) === 0 ? { servername: host, ...tls } : tls;
}

function importRedis(option: string): Promise<ClientMaker> {
  const neededBy = `redis({ ${option} })`;
  return importClient(loadClientMaker, { neededBy, name: 'ioredis, version 5 or 6', install: 'ioredis', option });
}
