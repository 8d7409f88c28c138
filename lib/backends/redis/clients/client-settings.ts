import { randomInt, randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { pause, systemClock } from '../../../core/index.js';
import type { Login, LoginSource, RedisAddress, RedisTls } from '../access-options.js';
import type { NatMap, RedisClient } from '../connection/redis-client.js';
import { isErrorReply } from '../error.js';

const MAX_RECONNECT_DELAY_MS = 1_000;
export const CONNECT_TIMEOUT_MS = 5_000;
/** Time after which a Sentinel that does not answer is skipped for the next one. */
export const SENTINEL_TIMEOUT_MS = 1_000;
/** Idle time before the system probes a connection. Firewalls drop connections that are idle for minutes. */
export const KEEP_ALIVE_AFTER_MS = 10_000;
/** Pause after a login that could not be asked for. */
const LOGIN_RETRY_MS = 500;
/** Name by which `CLIENT LIST` shows the connections. */
export const CONNECTION_NAME = 'nestjs-distributed-lock';

export interface ServerLocation {
  readonly host: string;
  readonly port?: number;
  readonly db?: number;
  /** IP version, 4 or 6; 0 for both. */
  readonly family?: number;
  readonly tls?: ConnectionOptions | undefined;
}

/** A master, by the Sentinels that know its address. */
export interface MasterLocation {
  /** Name of the master in the Sentinels' configuration. */
  readonly name: string;
  readonly db?: number | undefined;
  readonly tls?: ConnectionOptions | undefined;
  readonly natMap?: Exclude<NatMap, Function> | undefined;
  readonly sentinels: readonly Required<RedisAddress>[];
  readonly sentinelTls?: ConnectionOptions | undefined;
}

/** Makes clients of one package. They are not connected yet. */
export interface ClientMaker {
  makeClient(location: ServerLocation, login: LoginSource): RedisClient;
  makeMasterClient(location: MasterLocation, login: LoginSource, sentinelLogin: LoginSource): RedisClient;
}

/** Returns a random delay, which doubles with each attempt to connect. */
export function reconnectDelayMs(attempt: number): number {
  const delayMs = Math.min(20 * 2 ** attempt, MAX_RECONNECT_DELAY_MS);
  return delayMs / 2 + randomInt(Math.ceil(delayMs / 2) + 1);
}

/** Returns a unique name, which proves that a connection on the server belongs to one client. */
export function createConnectionName(): string {
  return `${CONNECTION_NAME}:${randomUUID()}`;
}

export function tlsOptions(tls: RedisTls | undefined): ConnectionOptions | undefined {
  return tls === true ? {} : tls === false ? undefined : tls;
}

/**
 * Adds the name by which a server chooses its certificate, which neither Node nor a client adds. An IP address is not
 * allowed as a name: https://www.rfc-editor.org/rfc/rfc6066#section-3
 */
export function withServerName(host: string, tls: ConnectionOptions): ConnectionOptions {
  return isIP(host.replace(/^\[|\]$/gu, '')) === 0 ? { servername: host, ...tls } : tls;
}

/**
 * Selects the database of a new connection. Other processes would hold the same keys in another database, so an error
 * makes the connection useless.
 * @param sendCommand sends a command over the connection
 */
export async function selectDatabase(db: number, sendCommand: RedisClient['call']): Promise<void> {
  try {
    // The name is in lower case, because ioredis sends only that one before the client is ready.
    await sendCommand('select', db);
  } catch (error) {
    // A user of database 0 may lack the right to SELECT it, and needs no SELECT.
    if (db !== 0 || !isErrorReply(error) || error.message.startsWith('NOAUTH')) throw error;
  }
}

/** Asks for a login again and again until it is given. Resolves to `undefined` when `isStopped`. */
export async function askForLogin(
  login: LoginSource,
  onError: (error: unknown) => void,
  isStopped: () => boolean,
): Promise<Login | undefined> {
  if (typeof login !== 'function') return login;
  while (!isStopped()) {
    try {
      const answer = await login();
      return isStopped() ? undefined : answer;
    } catch (error) {
      onError(error);
      await pause(systemClock, LOGIN_RETRY_MS, { background: true });
    }
  }
  return undefined;
}
