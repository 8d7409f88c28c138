import {
  assertAddress,
  assertAddresses,
  assertNumber,
  assertSecret,
  assertTls,
  assertWhole,
  refuse,
  show,
} from './option-checks.js';
import type { RedisClient, RedisCluster } from './connection/redis-client.js';
import type { RedisTls } from './connection/tls-options.js';

export type RedisMode = 'queue' | 'plain' | 'getset';

interface CommonOptions {
  /**
   * `queue`: waiters stand in line on the server and are handed the key. `plain`: `SET NX PX` and nothing else on the server,
   * waiters poll. `getset`: for servers and proxies without scripting. Where a network delivers a command late, after its
   * connection was given up, two may hold a key for up to a third of the TTL; and a client that is given must have no queue of its
   * own (`enableOfflineQueue: false`, `maxRetriesPerRequest: 0`). All processes that share a key must use the same mode. @default 'queue'
   */
  readonly mode?: RedisMode;
  /** What the names of all our keys and channels begin with: letters, digits, `_`, `.`, `:` and `-`. @default 'lock' */
  readonly prefix?: string;
  /**
   * How long the server may say nothing at all, while commands are under way, before they count as failed; and how long a command
   * waits here for a connection. Best below a third of the TTL. @default 1_000
   */
  readonly commandTimeoutMs?: number;
  /**
   * How long a caller who waits goes on asking servers that fail, before `LockBackendError`: with Sentinel or a cluster longer
   * than a failover takes. @default 2_000, with Sentinel or a cluster 30_000
   */
  readonly patienceMs?: number;
  /**
   * So many replicas must have a grant, or a renewal, before it counts (`WAIT`); until they do it is asked for again, and in the
   * end given back. Narrows what a failover can lose, and never closes it: another replica may be promoted. Each grant waits
   * for the replicas, at most a quarter of `commandTimeoutMs`. @default 0
   */
  readonly minReplicas?: number;
}

/** Where a server or a Sentinel listens. */
export interface RedisAddress {
  readonly host: string;
  /** @default 6379, of a Sentinel 26379 */
  readonly port?: number;
}

/** How to get into servers that are found by asking others. */
export interface AccessOptions {
  readonly username?: string;
  readonly password?: string;
  readonly tls?: RedisTls;
  /** Where the servers are for us, by the `host:port` by which they know each other. */
  readonly natMap?: Readonly<Record<string, { readonly host: string; readonly port: number }>>;
}

/** A master that Sentinels watch over: https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/ */
export interface SentinelOptions extends AccessOptions {
  readonly sentinels: readonly RedisAddress[];
  /** What the Sentinels call the master. */
  readonly name: string;
  /** @default 0 */
  readonly db?: number;
  readonly sentinelUsername?: string;
  readonly sentinelPassword?: string;
  readonly sentinelTls?: RedisTls;
}

export interface ClusterOptions extends AccessOptions {
  /** Some nodes of the cluster: they know the others. */
  readonly cluster: readonly RedisAddress[];
}

interface Places {
  readonly url: string;
  readonly client: RedisClient | RedisCluster;
  readonly sentinels: readonly RedisAddress[];
  readonly cluster: readonly RedisAddress[];
}

type At<Place extends keyof Places> = Pick<Places, Place> & {
  readonly [Other in Exclude<keyof Places, Place>]?: never;
};

/**
 * `url`, `sentinels`, `cluster`: we make the connections, with our own settings, and close them. `client`: an ioredis client
 * (5 or 6) of yours, for one server or by Sentinel. It is never closed and never cut, and is sent nothing while it is not
 * ready or its server says nothing; the subscription uses a duplicate of it. Of a `Cluster` only the nodes and settings are
 * used: the connections are our own duplicates of its connections.
 */
export type RedisOptions = CommonOptions &
  (At<'url'> | At<'client'> | (At<'sentinels'> & SentinelOptions) | (At<'cluster'> & ClusterOptions));

export type ResolvedRedisOptions = RedisOptions & Required<CommonOptions>;

/** Of ioredis: whether commands wait in the client, for a connection or for the next one. */
interface QueueOptions {
  readonly enableOfflineQueue?: boolean;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly maxRetriesPerRequest?: number | null;
}

const MODES: readonly string[] = ['queue', 'plain', 'getset'] satisfies RedisMode[];
const COMMON = ['mode', 'prefix', 'commandTimeoutMs', 'patienceMs', 'minReplicas'];
const ACCESS = ['username', 'password', 'tls', 'natMap'];
/** What may be said about each place, besides what may always be said. */
const PLACES: Readonly<Record<keyof Places, readonly string[]>> = {
  url: [],
  client: [],
  sentinels: [...ACCESS, 'name', 'db', 'sentinelUsername', 'sentinelPassword', 'sentinelTls'],
  cluster: ACCESS,
};
const PLACE_NAMES = ['url', 'client', 'sentinels', 'cluster'] as const;
const CLIENT_METHODS = ['call', 'duplicate', 'connect', 'disconnect', 'on', 'off'];
const CLUSTER_METHODS = ['connect', 'nodes'];
/** Longer than the servers' own defaults need for a failover. */
const FAILOVER_MS = 30_000;

/** Fills in what was left open. @throws LockConfigurationError naming the option; a URL is never repeated, for its password */
export function resolveRedisOptions(given: RedisOptions): ResolvedRedisOptions {
  if (typeof given !== 'object' || given === null) refuse('options', `must be an object; they were ${show(given)}`);
  const place = placeOf(given);
  const known = [place, ...PLACES[place], ...COMMON];
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) refuse(name, `is no option of redis({ ${place} }); there are ${known.join(', ')}`);
  }
  const { mode = 'queue', prefix = 'lock', commandTimeoutMs = 1_000, minReplicas = 0 } = given;
  const failsOver = place === 'sentinels' || place === 'cluster' || given.client?.isCluster === true;
  const { patienceMs = failsOver ? FAILOVER_MS : 2_000 } = given;
  if (given.url !== undefined) assertUrl(given.url);
  if (given.client !== undefined) assertClient(given.client);
  if (given.sentinels !== undefined) assertSentinels(given);
  if (given.cluster !== undefined) {
    assertAddresses('cluster', given.cluster);
    assertAccess(given);
  }
  if (!MODES.includes(mode)) refuse('mode', `must be one of ${MODES.join(', ')}; it was ${show(mode)}`);
  if (typeof prefix !== 'string' || !/^[\w.:-]{1,100}$/u.test(prefix)) {
    refuse('prefix', `must be 1 to 100 letters, digits, "_", ".", ":" or "-"; it was ${show(prefix)}`);
  }
  if (mode === 'getset' && given.client !== undefined) assertPrompt(given.client);
  assertNumber('commandTimeoutMs', commandTimeoutMs, 1, 60_000);
  assertNumber('patienceMs', patienceMs, 0, Infinity);
  assertWhole('minReplicas', minReplicas, 0, 100);
  return { ...given, mode, prefix, commandTimeoutMs, patienceMs, minReplicas };
}

function placeOf(given: object): keyof Places {
  const [place, other] = PLACE_NAMES.filter((name) => Reflect.get(given, name) !== undefined);
  if (!place) return refuse('url', `or client, sentinels or cluster must be given${urlFor(given)}`);
  if (other) refuse(other, `and ${place} exclude each other: give one of them`);
  return place;
}

/** What ioredis takes apart, we take as a URL. */
function urlFor(given: object): string {
  const { host, port = 6_379 }: { host?: unknown; port?: unknown } = given;
  if (host === undefined && !('port' in given)) return '';
  const place = typeof host === 'string' && /^[\w.-]+$/u.test(host) ? host : 'localhost';
  const where = `${place}:${typeof port === 'number' ? port : 6_379}`;
  return `: write url: 'redis://${where}', with a password 'redis://user:password@${where}', with TLS 'rediss://…'`;
}

function assertUrl(url: unknown): void {
  const ok = typeof url === 'string' && URL.canParse(url) && /^rediss?:$/u.test(new URL(url).protocol);
  if (!ok) refuse('url', 'must look like redis://user:password@host:6379/0 or rediss://…');
}

function assertClient(client: unknown): void {
  if (typeof client !== 'object' || client === null)
    refuse('client', `must be an ioredis client; it was ${show(client)}`);
  const methods = Reflect.get(client, 'isCluster') === true ? CLUSTER_METHODS : CLIENT_METHODS;
  const missing = methods.filter((name) => typeof Reflect.get(client, name) !== 'function');
  if (missing.length > 0) refuse('client', `must be an ioredis client; it has no ${missing.join(', ')}`);
}

/** Late is harmless where a command compares owners, and nowhere else. The connections to the nodes of a Cluster are our own. */
function assertPrompt(client: RedisClient | RedisCluster): void {
  if (client.isCluster) return;
  const { enableOfflineQueue, autoResendUnfulfilledCommands, maxRetriesPerRequest }: QueueOptions =
    client.options ?? {};
  const resends = autoResendUnfulfilledCommands !== false && maxRetriesPerRequest !== 0;
  if (enableOfflineQueue !== false || resends) {
    refuse(
      'client',
      "sends commands late, which lets two hold a key in mode 'getset': make it with { enableOfflineQueue: false, maxRetriesPerRequest: 0 }, or give its url",
    );
  }
}

function assertSentinels(given: SentinelOptions): void {
  assertAddresses('sentinels', given.sentinels);
  if (typeof given.name !== 'string' || given.name === '')
    refuse('name', `must say what the Sentinels call the master; it was ${show(given.name)}`);
  if (given.db !== undefined) assertWhole('db', given.db, 0, 1e6);
  assertSecret('sentinelUsername', given.sentinelUsername);
  assertSecret('sentinelPassword', given.sentinelPassword);
  assertTls('sentinelTls', given.sentinelTls);
  assertAccess(given);
}

function assertAccess({ username, password, tls, natMap }: AccessOptions): void {
  assertSecret('username', username);
  assertSecret('password', password);
  assertTls('tls', tls);
  if (natMap === undefined) return;
  if (typeof natMap !== 'object' || natMap === null) refuse('natMap', `must be an object; it was ${show(natMap)}`);
  for (const address of Object.values(natMap)) assertAddress('natMap', address);
}
