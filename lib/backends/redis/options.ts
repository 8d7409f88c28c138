import {
  assertNumber,
  assertOneOf,
  assertOptions,
  assertText,
  assertWhole,
  type Given,
  refuseOption,
  shownOption,
} from '../../core/index.js';
import {
  assertAddress,
  assertAddresses,
  assertCredentials,
  assertHost,
  assertLogin,
  assertTls,
  type RedisAddress,
  type RedisCredentials,
  type RedisHostOptions,
  type RedisLoginOptions,
  type RedisTls,
} from './access-options.js';
import type { RedisClient, RedisCluster } from './connection/redis-client.js';
import { readRedisUrl } from './redis-url.js';

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

/** How to get into servers that are found by asking others. */
export interface RedisAccessOptions extends RedisLoginOptions {
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
  /** A function is asked anew for each connection. */
  readonly sentinelCredentials?: Given<RedisCredentials>;
  readonly sentinelTls?: RedisTls;
}

export interface RedisClusterOptions extends RedisAccessOptions {
  /** Some nodes of the cluster: they know the others. */
  readonly cluster: readonly RedisAddress[];
}

interface Topologies {
  readonly url: string;
  readonly host: string;
  readonly client: RedisClient | RedisCluster;
  readonly sentinels: readonly RedisAddress[];
  readonly cluster: readonly RedisAddress[];
}

type Only<Topology extends keyof Topologies> = Pick<Topologies, Topology> & {
  readonly [Other in Exclude<keyof Topologies, Topology>]?: never;
};

/**
 * `url`, `host`, `sentinels`, `cluster`: the backend makes its connections and closes them. `client`: an ioredis client (5 or
 * 6) of yours, for one server or by Sentinel. The backend never closes or cuts it, and sends it nothing while it is not
 * ready or its server is silent. The subscription uses a duplicate of it. Of a `Cluster` the backend uses the nodes and
 * settings only: it connects by duplicates.
 * @interface
 */
export type RedisOptions = CommonOptions &
  (
    | (Only<'url'> & RedisLoginOptions)
    | (Only<'host'> & RedisHostOptions)
    | Only<'client'>
    | (Only<'sentinels'> & RedisSentinelOptions)
    | (Only<'cluster'> & RedisClusterOptions)
  );

export type ResolvedRedisOptions = RedisOptions & Required<CommonOptions>;

const MODES = ['queue', 'plain', 'getset'] satisfies RedisMode[];
const COMMON = ['mode', 'prefix', 'requestTimeoutMs', 'patienceMs', 'minReplicas'];
const LOGIN = ['credentials', 'tls'];
const ACCESS = [...LOGIN, 'natMap'];
/** The options of each topology, besides those of all. */
const TOPOLOGIES: Readonly<Record<keyof Topologies, readonly string[]>> = {
  url: LOGIN,
  host: ['port', 'username', 'password', 'tls', 'db'],
  client: [],
  sentinels: [...ACCESS, 'name', 'db', 'sentinelCredentials', 'sentinelTls'],
  cluster: ACCESS,
};
const TOPOLOGY_NAMES = ['url', 'host', 'client', 'sentinels', 'cluster'] as const;
const CLIENT_METHODS = ['call', 'duplicate', 'connect', 'disconnect', 'on', 'off'];
const CLUSTER_METHODS = ['connect', 'call', 'nodes'];
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
  if (given.url !== undefined) {
    readRedisUrl('url', given.url);
    assertLogin(given);
  }
  if (given.host !== undefined) assertHost(given);
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
  if (!topology) return refuseOption('url', 'or host, client, sentinels or cluster must be given');
  if (other) refuseOption(other, `and ${topology} exclude each other: give one of them`);
  return topology;
}

export function assertPrefix(prefix: unknown): void {
  assertText('prefix', prefix, /^[\w.:-]{1,100}$/u, '1 to 100 letters, digits, "_", ".", ":" or "-"');
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
  assertLogin({ credentials, tls });
  if (natMap === undefined) return;
  if (typeof natMap !== 'object' || natMap === null)
    refuseOption('natMap', `must be an object; it was ${shownOption(natMap)}`);
  for (const address of Object.values(natMap)) assertAddress('natMap', address);
}
