import {
  assertNumber,
  assertOneOf,
  assertOptions,
  assertText,
  assertWhole,
  type ValueOrGetter,
  refuseOption,
  shownOption,
} from '../../core/index.js';
import {
  assertAddress,
  assertAddresses,
  assertCredentials,
  assertHostOptions,
  assertLoginOptions,
  assertTls,
  type RedisAddress,
  type RedisCredentials,
  type RedisHostOptions,
  type RedisLoginOptions,
  type RedisTls,
} from './access-options.js';
import { assertClient, assertSendsNothingLate, followsFailovers, type GivenClient } from './clients/given-client.js';
import { CLIENT_PACKAGES, type RedisClientPackage } from './clients/own-client.js';
import { readRedisUrl } from './redis-url.js';

export type RedisMode = 'queue' | 'plain' | 'getset';

interface CommonOptions {
  /**
   * `queue`: waiters queue on the server, which hands them the key. `plain`: only `SET NX PX` on the server, and
   * waiters poll. `getset`: for servers and proxies without scripting. If the network delivers a command late, two
   * owners may hold a key for up to a third of the TTL. In this mode a given client must not send commands late: one of
   * ioredis needs `enableOfflineQueue: false` or `maxRetriesPerRequest: 0`, one of node-redis `disableOfflineQueue`.
   * All processes that share a key must use the same mode.
   * @default 'queue'
   */
  readonly mode?: RedisMode;
  /** Start of the names of all keys and channels: letters, digits, `_`, `.`, `:` and `-`. @default 'lock' */
  readonly prefix?: string;
  /**
   * Time after which the commands under way fail if the server has sent no byte. A command fails, too, when it has
   * waited for a connection for this time. A value below a third of the TTL, the interval of renewals, is best.
   * @default 1_000
   */
  readonly requestTimeoutMs?: number;
  /**
   * Time for which a request that fails is retried before `LockBackendError`: longer than a failover takes.
   * @default 2_000, with Sentinel or a cluster 30_000
   */
  readonly patienceMs?: number;
  /**
   * Number of replicas that must have a grant or a renewal before it counts (`WAIT`). Without them the request is
   * retried, and a grant that never counts is released. Failovers then lose fewer locks, but may still promote a
   * replica without the grant. Each grant waits for the replicas, for a quarter of `requestTimeoutMs` at most.
   * @default 0
   */
  readonly minReplicas?: number;
  /**
   * `auto`: a holder learns within a round trip that its key was deleted, evicted or flushed, by `CLIENT TRACKING` of
   * Redis 6 or newer. For this, locks that are held for longer than some 30 ms get an extra renewal, and the process
   * has a second connection. If the server or the user's rights do not allow it, `health` says so. A holder then learns
   * of the loss with its next renewal, as it always does with `off`. The mode `getset` has no tracking. @default 'auto'
   */
  readonly tracking?: 'auto' | 'off';
}

interface PackageOptions {
  /** Package that makes the connections: `redis` is node-redis. @default the first of them that is installed */
  readonly clientPackage?: RedisClientPackage;
}

/** Options for servers that the backend finds through Sentinels or through nodes of a cluster. */
export interface RedisAccessOptions extends RedisLoginOptions {
  /** Maps the `host:port` by which servers know each other to the address at which this process reaches them. */
  readonly natMap?: Readonly<Record<string, { readonly host: string; readonly port: number }>>;
}

/**
 * Options for a master that Sentinels monitor:
 * https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/
 */
export interface RedisSentinelOptions extends RedisAccessOptions {
  readonly sentinels: readonly RedisAddress[];
  /** Name of the master in the Sentinels' configuration. */
  readonly name: string;
  /** @default 0 */
  readonly db?: number;
  /** User and password of the Sentinels, or a function that is called for each connection. */
  readonly sentinelCredentials?: ValueOrGetter<RedisCredentials>;
  readonly sentinelTls?: RedisTls;
}

export interface RedisClusterOptions extends RedisAccessOptions {
  /** Addresses of some nodes of the cluster, which know the others. */
  readonly cluster: readonly RedisAddress[];
}

interface Topologies {
  readonly url: string;
  readonly host: string;
  readonly client: GivenClient;
  readonly sentinels: readonly RedisAddress[];
  readonly cluster: readonly RedisAddress[];
}

/** The option of one topology, without the options of the others. */
type Only<Topology extends keyof Topologies> = Pick<Topologies, Topology> & {
  readonly [Other in Exclude<keyof Topologies, Topology>]?: never;
};

/**
 * Options of `redis`. With `url`, `host`, `sentinels` or `cluster` the backend makes its connections and closes them.
 *
 * `client`: a client of the application, by ioredis or by node-redis (`redis`), version 5 or 6 of either. The backend
 * never disconnects it, and sends it nothing while it is not ready or its server is silent. A duplicate of the client
 * subscribes to the messages for waiters and holders. The backend takes only nodes and settings from a `Cluster` of
 * ioredis, and from `createCluster` and `createSentinel` of node-redis. It connects to the nodes by clients of its own.
 * @interface
 */
export type RedisOptions = CommonOptions &
  (
    | (Only<'url'> & RedisLoginOptions & PackageOptions)
    | (Only<'host'> & RedisHostOptions & PackageOptions)
    | (Only<'client'> & { readonly clientPackage?: never })
    | (Only<'sentinels'> & RedisSentinelOptions & PackageOptions)
    | (Only<'cluster'> & RedisClusterOptions & PackageOptions)
  );

export type ResolvedRedisOptions = RedisOptions & Required<CommonOptions>;

const MODES = ['queue', 'plain', 'getset'] satisfies RedisMode[];
const COMMON_OPTIONS = ['mode', 'prefix', 'requestTimeoutMs', 'patienceMs', 'minReplicas', 'tracking'];
const LOGIN_OPTIONS = ['credentials', 'tls', 'clientPackage'];
const ACCESS_OPTIONS = [...LOGIN_OPTIONS, 'natMap'];
const OPTIONS_BY_TOPOLOGY: Readonly<Record<keyof Topologies, readonly string[]>> = {
  url: LOGIN_OPTIONS,
  host: ['port', 'username', 'password', 'tls', 'db', 'clientPackage'],
  client: [],
  sentinels: [...ACCESS_OPTIONS, 'name', 'db', 'sentinelCredentials', 'sentinelTls'],
  cluster: ACCESS_OPTIONS,
};
const TOPOLOGIES = ['url', 'host', 'client', 'sentinels', 'cluster'] as const;
/** Default of `patienceMs` for several servers: longer than a failover takes with their default settings. */
const FAILOVER_PATIENCE_MS = 30_000;

/** @throws LockConfigurationError, which never shows a URL: it may have a password */
export function resolveRedisOptions(options: RedisOptions): ResolvedRedisOptions {
  // Refuses a value that is no object. The names of the options are checked below.
  assertOptions(options, Object.keys(Object(options)), 'redis');
  const topology = topologyOf(options);
  assertOptions(options, [topology, ...OPTIONS_BY_TOPOLOGY[topology], ...COMMON_OPTIONS], `redis({ ${topology} })`);
  const { mode = 'queue', prefix = 'lock', requestTimeoutMs = 1_000, minReplicas = 0, tracking = 'auto' } = options;
  const mayFailOver = topology === 'sentinels' || topology === 'cluster' || followsFailovers(options.client);
  const { patienceMs = mayFailOver ? FAILOVER_PATIENCE_MS : 2_000 } = options;
  if (options.url !== undefined) {
    readRedisUrl('url', options.url);
    assertLoginOptions(options);
  }
  if (options.host !== undefined) assertHostOptions(options);
  if (options.client !== undefined) assertClient(options.client);
  if (options.sentinels !== undefined) assertSentinelOptions(options);
  if (options.cluster !== undefined) {
    assertAddresses('cluster', options.cluster);
    assertAccessOptions(options);
  }
  if (options.clientPackage !== undefined) assertOneOf('clientPackage', options.clientPackage, CLIENT_PACKAGES);
  assertOneOf('mode', mode, MODES);
  assertPrefix(prefix);
  if (mode === 'getset' && options.client !== undefined) assertSendsNothingLate(options.client);
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, 60_000);
  assertNumber('patienceMs', patienceMs, 0, Infinity);
  assertWhole('minReplicas', minReplicas, 0, 100);
  assertOneOf('tracking', tracking, ['auto', 'off']);
  return { ...options, mode, prefix, requestTimeoutMs, patienceMs, minReplicas, tracking };
}

function topologyOf(options: object): keyof Topologies {
  const [topology, secondTopology] = TOPOLOGIES.filter((name) => Reflect.get(options, name) !== undefined);
  if (!topology) return refuseOption('url', 'or host, client, sentinels or cluster must be given');
  if (secondTopology) refuseOption(secondTopology, `and ${topology} exclude each other: give one of them`);
  return topology;
}

export function assertPrefix(prefix: unknown): void {
  assertText('prefix', prefix, /^[\w.:-]{1,100}$/u, '1 to 100 letters, digits, "_", ".", ":" or "-"');
}

function assertSentinelOptions(options: RedisSentinelOptions): void {
  assertAddresses('sentinels', options.sentinels);
  assertText('name', options.name, /./su, "the Sentinels' name of the master");
  if (options.db !== undefined) assertWhole('db', options.db, 0, 1e6);
  assertCredentials('sentinelCredentials', options.sentinelCredentials);
  assertTls('sentinelTls', options.sentinelTls);
  assertAccessOptions(options);
}

function assertAccessOptions({ credentials, tls, natMap }: RedisAccessOptions): void {
  assertLoginOptions({ credentials, tls });
  if (natMap === undefined) return;
  if (typeof natMap !== 'object' || natMap === null)
    refuseOption('natMap', `must be an object; it was ${shownOption(natMap)}`);
  for (const address of Object.values(natMap)) assertAddress('natMap', address);
}
