import { randomInt, randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { pause, systemClock } from '../../../core/index.js';
import type { Login, LoginSource, RedisAddress, RedisTls } from '../access-options.js';
import type { NatMap, RedisClient } from '../connection/redis-client.js';
import { isErrorReply, isFormerMasterError, isNoReplicasError } from '../error.js';

const MAX_RECONNECT_DELAY_MS = 1_000;
export const CONNECT_TIMEOUT_MS = 5_000;
export const SENTINEL_TIMEOUT_MS = 1_000;
/** Idle time before TCP keep-alives: firewalls drop connections that are idle for minutes. */
export const KEEP_ALIVE_AFTER_MS = 10_000;
const LOGIN_RETRY_MS = 500;
const RECONNECT_INTERVAL_MS = 500;
const NO_REPLICAS_RECONNECT_INTERVAL_MS = 5_000;
export const CONNECTION_NAME_PREFIX = 'nestjs-distributed-lock';

export interface ServerLocation {
  readonly host: string;
  readonly port?: number;
  readonly db?: number;
  /** IP version, 4 or 6; 0 for both. */
  readonly family?: number;
  readonly tls?: ConnectionOptions | undefined;
}

/** Location of a master whose address Sentinels tell. */
export interface MasterLocation {
  /** Name of the master in the Sentinels' configuration. */
  readonly name: string;
  readonly db?: number | undefined;
  readonly tls?: ConnectionOptions | undefined;
  readonly natMap?: Exclude<NatMap, Function> | undefined;
  readonly sentinels: readonly Required<RedisAddress>[];
  readonly sentinelTls?: ConnectionOptions | undefined;
}

/** Factory for clients of one package. A new client is not connected yet. */
export interface ClientMaker {
  makeClient(location: ServerLocation, login: LoginSource): RedisClient;
  makeMasterClient(location: MasterLocation, login: LoginSource, sentinelLogin: LoginSource): RedisClient;
}

export function reconnectDelayMs(attempt: number): number {
  const delayMs = Math.min(20 * 2 ** attempt, MAX_RECONNECT_DELAY_MS);
  return delayMs / 2 + randomInt(Math.ceil(delayMs / 2) + 1);
}

/**
 * Returns a function that decides whether a client reconnects because of an error. A server may answer so for long: the
 * client then reconnects only at intervals.
 */
export function createReconnectRule(): (error: Error) => boolean {
  let lastReconnectAt = -Infinity;
  return (error) => {
    if (!isFormerMasterError(error)) return false;
    const now = systemClock.now();
    const intervalMs = isNoReplicasError(error) ? NO_REPLICAS_RECONNECT_INTERVAL_MS : RECONNECT_INTERVAL_MS;
    if (now - lastReconnectAt < intervalMs) return false;
    lastReconnectAt = now;
    return true;
  };
}

/** Returns a unique name, by which the backend finds a client's connection in the reply of `CLIENT LIST`. */
export function createConnectionName(): string {
  return `${CONNECTION_NAME_PREFIX}:${randomUUID()}`;
}

/**
 * Returns the list with the entry at `startIndex` as the first one. `startIndex` may exceed the list. Each attempt of
 * node-redis, and each new client, thus asks another Sentinel first: one may be dead or have outdated data.
 */
export function rotate<T>(list: readonly T[], startIndex: number): readonly T[] {
  const firstIndex = startIndex % list.length;
  return [...list.slice(firstIndex), ...list.slice(0, firstIndex)];
}

export function tlsOptions(tls: RedisTls | undefined): ConnectionOptions | undefined {
  return tls === true ? {} : tls === false ? undefined : tls;
}

/**
 * Adds the host name by which the server chooses its certificate. Neither Node nor the client package adds it. An IP
 * address is not allowed as a name: https://www.rfc-editor.org/rfc/rfc6066#section-3
 */
export function withServerName(host: string, tls: ConnectionOptions): ConnectionOptions {
  return isIP(host.replace(/^\[|\]$/gu, '')) === 0 ? { servername: host, ...tls } : tls;
}

/** Errors after which a connection is in database 0: of users without the right, of proxies, and of busy servers. */
const NEEDS_NO_SELECT = /^(?:NOPERM|LOADING|BUSY)\b|unknown command/iu;

/**
 * Selects the database of a connection. Rejects when the connection must not be used: in another database it would not
 * see the locks of other processes.
 */
export async function selectDatabase(db: number, sendCommand: RedisClient['call']): Promise<void> {
  try {
    // In lower case, because ioredis sends no `SELECT` in upper case before the client is ready.
    await sendCommand('select', db);
  } catch (error) {
    // Each connection begins in database 0, and needs no SELECT for it. Another error, such as a missing login or too many
    // clients, is the server's answer to the connection itself.
    if (db !== 0 || !isErrorReply(error) || !NEEDS_NO_SELECT.test(error.message)) throw error;
  }
}

/** Resolves to `master` or `slave`, or to `undefined` when the server or the user's rights do not allow `INFO`. */
export async function readRole(sendCommand: RedisClient['call']): Promise<string | undefined> {
  try {
    // In lower case, because ioredis sends no `INFO` in upper case before the client is ready.
    return /^role:(?<role>\w+)/mu.exec(String(await sendCommand('info', 'replication')))?.groups?.role;
  } catch (error) {
    if (!isErrorReply(error)) throw error;
    return undefined;
  }
}

/** Calls a login function until it succeeds. Resolves to `undefined` when `isStopped` returns true before that. */
export async function getLoginWithRetries(
  loginSource: LoginSource,
  onError: (error: unknown) => void,
  isStopped: () => boolean,
): Promise<Login | undefined> {
  if (typeof loginSource !== 'function') return loginSource;
  while (!isStopped()) {
    try {
      const login = await loginSource();
      return isStopped() ? undefined : login;
    } catch (error) {
      onError(error);
      await pause(systemClock, LOGIN_RETRY_MS, { background: true });
    }
  }
  return undefined;
}
