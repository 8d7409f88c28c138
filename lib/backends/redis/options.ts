import {
  areCredentials,
  assertNumber,
  assertOneOf,
  assertOptions,
  assertText,
  assertWhole,
  refuseOption,
  shownOption,
} from '../../core/index.js';
import type { RedisClient, RedisCluster } from './connection/redis-client.js';
import type { RedisTls } from './connection/client-factory.js';

export type RedisMode = 'queue' | 'plain' | 'getset';

interface CommonOptions {
  /**
   * `queue`: waiters stand in line on the server and are handed the key. `plain`: `SET NX PX` and nothing else on the
   * server; waiters poll. `getset`: for servers and proxies without scripting. Where a network delivers a command late,
   * two may hold a key for up to a third of the TTL. A client that you give must send nothing late: it needs
   * `enableOfflineQueue: false`, `maxRetriesPerRequest: 0`. All processes that share a key must use the same mode.
   * @default 'queue'
   */
  readonly mode?: RedisMode;
  /** Begins the names of all keys and channels: letters, digits, `_`, `.`, `:` and `-`. @default 'lock' */
  readonly prefix?: string;
  /**
   * Commands under way fail when not a byte has come from the server for this time. A command waits as long for a
   * connection. Best below a third of the TTL. @default 1_000
   */
  readonly requestTimeoutMs?: number;
  /**
   * How long failures in a row are asked again before `LockBackendError`. A failover should fit in.
   * @default 2_000, with Sentinel or a cluster 30_000
   */
  readonly patienceMs?: number;
  /**
   * How many replicas must have a grant, or a renewal, before it counts (`WAIT`). Until they do, it is asked for again,
   * and in the end released. A failover loses less, but may still promote another replica. Each grant waits for the
   * replicas, at most a quarter of `requestTimeoutMs`. @default 0
   */
  readonly minReplicas?: number;
}

/** Where a server or a Sentinel listens. */
export interface RedisAddress {
  readonly host: string;
  /** @default 6379, of a Sentinel 26379 */
  readonly port?: number;
}

export interface RedisCredentials {
  /** @default 'default', the user of servers that know a password only */
  readonly username?: string;
  readonly password: string;
}

/** How to get into servers that are found by asking others. */
export interface RedisAccessOptions {
  readonly credentials?: RedisCredentials;
  readonly tls?: RedisTls;
  /** The address at which this process reaches a server, by the `host:port` by which the servers know each other. */
  readonly natMap?: Readonly<Record<string, { readonly host: string; readonly port: number }>>;
}

/** A master that Sentinels watch over: https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/ */
export interface RedisSentinelOptions extends RedisAccessOptions {
  readonly sentinels: readonly RedisAddress[];
  /** The Sentinels' name of the master. */
  readonly name: string;
  /** @default 0 */
  readonly db?: number;
  readonly sentinelCredentials?: RedisCredentials;
  readonly sentinelTls?: RedisTls;
}

export interface RedisClusterOptions extends RedisAccessOptions {
  /** Some nodes of the cluster: they know the others. */
  readonly cluster: readonly RedisAddress[];
}

interface Topologies {
  readonly url: string;
  readonly client: RedisClient | RedisCluster;
  readonly sentinels: readonly RedisAddress[];
  readonly cluster: readonly RedisAddress[];
}

type Only<Topology extends keyof Topologies> = Pick<Topologies, Topology> & {
  readonly [Other in Exclude<keyof Topologies, Topology>]?: never;
};

/**
 * `url`, `sentinels`, `cluster`: the backend makes its connections and closes them. `client`: an ioredis client (5 or
 * 6) of yours, for one server or by Sentinel. The backend never closes or cuts it, and sends it nothing while it is not
 * ready or its server is silent. The subscription uses a duplicate of it. Of a `Cluster` the backend uses the nodes and
 * settings only: it connects by duplicates.
 * @interface
 */
export type RedisOptions = CommonOptions &
  (Only<'url'> | Only<'client'> | (Only<'sentinels'> & RedisSentinelOptions) | (Only<'cluster'> & RedisClusterOptions));

export type ResolvedRedisOptions = RedisOptions & Required<CommonOptions>;

const MODES = ['queue', 'plain', 'getset'] satisfies RedisMode[];
const COMMON = ['mode', 'prefix', 'requestTimeoutMs', 'patienceMs', 'minReplicas'];
const ACCESS = ['credentials', 'tls', 'natMap'];
/** The options of each topology, besides those of all. */
const TOPOLOGIES: Readonly<Record<keyof Topologies, readonly string[]>> = {
  url: [],
  client: [],
  sentinels: [...ACCESS, 'name', 'db', 'sentinelCredentials', 'sentinelTls'],
  cluster: ACCESS,
};
const TOPOLOGY_NAMES = ['url', 'client', 'sentinels', 'cluster'] as const;
const REDIS_PORT = 6_379;
const CLIENT_METHODS = ['call', 'duplicate', 'connect', 'disconnect', 'on', 'off'];
const CLUSTER_METHODS = ['connect', 'nodes'];
/** Longer than the servers' own defaults need for a failover. */
const FAILOVER_MS = 30_000;

/** Fills in the defaults. @throws LockConfigurationError, which never shows a URL: it may have a password */
export function resolveRedisOptions(given: RedisOptions): ResolvedRedisOptions {
  assertOptions(given, Object.keys(Object(given)), 'redis');
  const topology = topologyOf(given);
  assertOptions(given, [topology, ...TOPOLOGIES[topology], ...COMMON], `redis({ ${topology} })`);
  const { mode = 'queue', prefix = 'lock', requestTimeoutMs = 1_000, minReplicas = 0 } = given;
  const failsOver = topology === 'sentinels' || topology === 'cluster' || isCluster(given.client);
  const { patienceMs = failsOver ? FAILOVER_MS : 2_000 } = given;
  if (given.url !== undefined) assertUrl('url', given.url);
  if (given.client !== undefined) assertClient(given.client);
  if (given.sentinels !== undefined) assertSentinels(given);
  if (given.cluster !== undefined) {
    assertAddresses('cluster', given.cluster);
    assertAccess(given);
  }
  assertOneOf('mode', mode, MODES);
  assertPrefix(prefix);
  if (mode === 'getset' && given.client !== undefined) assertPrompt(given.client);
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, 60_000);
  assertNumber('patienceMs', patienceMs, 0, Infinity);
  assertWhole('minReplicas', minReplicas, 0, 100);
  return { ...given, mode, prefix, requestTimeoutMs, patienceMs, minReplicas };
}

function topologyOf(given: object): keyof Topologies {
  const [topology, other] = TOPOLOGY_NAMES.filter((name) => Reflect.get(given, name) !== undefined);
  if (!topology) return refuseOption('url', `or client, sentinels or cluster must be given${urlFor(given)}`);
  if (other) refuseOption(other, `and ${topology} exclude each other: give one of them`);
  return topology;
}

/** The URL for the options that ioredis takes. */
function urlFor(given: object): string {
  const { host, port = REDIS_PORT }: { host?: unknown; port?: unknown } = given;
  if (host === undefined && !('port' in given)) return '';
  const name = typeof host === 'string' && /^[\w.-]+$/u.test(host) ? host : 'localhost';
  const address = `${name}:${typeof port === 'number' ? port : REDIS_PORT}`;
  return `: write url: 'redis://${address}', with a password 'redis://user:password@${address}', with TLS 'rediss://…'`;
}

export function assertPrefix(prefix: unknown): void {
  assertText('prefix', prefix, /^[\w.:-]{1,100}$/u, '1 to 100 letters, digits, "_", ".", ":" or "-"');
}

/** It may have a password, and is never shown. */
export function assertUrl(option: string, url: unknown, which = ''): asserts url is string {
  const fits = typeof url === 'string' && URL.canParse(url) && /^rediss?:$/u.test(new URL(url).protocol);
  if (!fits) refuseOption(option, `must look like redis://user:password@host:6379/0 or rediss://…${which}`);
}

function assertClient(client: unknown): void {
  const missing = missingMethods(client, isCluster(client) ? CLUSTER_METHODS : CLIENT_METHODS);
  if (missing.length === 0) return;
  const what = Object(client) === client ? `has no ${missing.join(', ')}` : `was ${shownOption(client)}`;
  refuseOption('client', `must be an ioredis client; it ${what}`);
}

/** Whether it is a client of one server. */
export function isClient(client: unknown): client is RedisClient {
  return !isCluster(client) && missingMethods(client, CLIENT_METHODS).length === 0;
}

export function isCluster(client: unknown): client is RedisCluster {
  return Reflect.get(Object(client), 'isCluster') === true;
}

function missingMethods(client: unknown, methods: readonly string[]): readonly string[] {
  return methods.filter((name) => typeof Reflect.get(Object(client), name) !== 'function');
}

/** A late command does harm where it compares no owners. The backend connects to the nodes of a Cluster itself. */
function assertPrompt(client: RedisClient | RedisCluster): void {
  if (isCluster(client)) return;
  const options: Partial<Record<string, unknown>> = Object(client.options);
  const resends = options.autoResendUnfulfilledCommands !== false && options.maxRetriesPerRequest !== 0;
  if (options.enableOfflineQueue !== false || resends) {
    const remedy = 'make it with { enableOfflineQueue: false, maxRetriesPerRequest: 0 }, or give its url';
    refuseOption('client', `sends commands late, which lets two hold a key in mode 'getset': ${remedy}`);
  }
}

function assertSentinels(given: RedisSentinelOptions): void {
  assertAddresses('sentinels', given.sentinels);
  assertText('name', given.name, /./su, "the Sentinels' name of the master");
  if (given.db !== undefined) assertWhole('db', given.db, 0, 1e6);
  assertCredentials('sentinelCredentials', given.sentinelCredentials);
  assertTls('sentinelTls', given.sentinelTls);
  assertAccess(given);
}

function assertAccess({ credentials, tls, natMap }: RedisAccessOptions): void {
  assertCredentials('credentials', credentials);
  assertTls('tls', tls);
  if (natMap === undefined) return;
  if (typeof natMap !== 'object' || natMap === null)
    refuseOption('natMap', `must be an object; it was ${shownOption(natMap)}`);
  for (const address of Object.values(natMap)) assertAddress('natMap', address);
}

/** A secret is never shown. */
function assertCredentials(option: string, value: unknown): void {
  const { username = 'default', password }: { username?: unknown; password?: unknown } = Object(value);
  if (value === undefined || areCredentials({ username, password })) return;
  refuseOption(option, 'must be { username, password }, two texts, the first of which may be left out');
}

function assertTls(option: string, value: unknown): void {
  const fits = value === undefined || typeof value === 'boolean' || (typeof value === 'object' && value !== null);
  if (!fits) refuseOption(option, `must be true, false or options of node:tls; it was ${shownOption(value)}`);
}

function assertAddresses(option: string, value: unknown): void {
  if (!Array.isArray(value) || value.length === 0) {
    refuseOption(option, `must be a list of one or more { host, port }; it was ${shownOption(value)}`);
  }
  for (const address of value) assertAddress(option, address);
}

function assertAddress(option: string, value: unknown): void {
  const { host, port = 1 }: { host?: unknown; port?: unknown } = Object(value);
  const fits =
    typeof host === 'string' && host !== '' && Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536;
  if (!fits)
    refuseOption(option, `must have addresses like { host: '10.0.0.1', port: 6379 }; there was ${shownOption(value)}`);
}
