import { assertNumber, assertOptions, refuseOption } from '../../core/index.js';
import { assertHost, assertLogin, type RedisHostOptions, type RedisLoginOptions } from '../redis/access-options.js';
import { createGivenClientSource, createHostSource, createUrlSource } from '../redis/connection/client-sources.js';
import type { RedisClient } from '../redis/connection/redis-client.js';
import { assertPrefix, isClient } from '../redis/options.js';
import { readRedisUrl } from '../redis/redis-url.js';

interface CommonOptions {
  /** Begins the names of all keys: letters, digits, `_`, `.`, `:` and `-`. @default 'redlock' */
  readonly prefix?: string;
  /**
   * How long a node may take to answer before it counts as failed. Only a decision that needs its answer waits so long.
   * Best below a third of the TTL. @default 1_000
   */
  readonly requestTimeoutMs?: number;
  /** How far a token may be from a node's clock. Nodes whose clocks differ more never make a quorum. @default 1_000 */
  readonly maxSkewMs?: number;
  /**
   * How long a node does not vote after its start: until the leases that it may have forgotten have ended. Set it to
   * the longest `ttlMs` in use, or a restart may let a second holder in, with a greater token. Needs `INFO`. @default 0
   */
  readonly restartQuarantineMs?: number;
}

interface Ways {
  readonly urls: readonly string[];
  readonly nodes: readonly RedisHostOptions[];
  readonly clients: readonly RedisClient[];
}

type Only<Way extends keyof Ways> = Pick<Ways, Way> & { readonly [Other in Exclude<keyof Ways, Way>]?: never };

/**
 * `urls`, with `credentials` and `tls` for all of them, or `nodes`: the backend makes its connections and closes them.
 * `clients`: ioredis clients (5 or 6) of yours, which are never closed and never cut. Each server is a master that
 * replicates nothing; best an odd number of them.
 * @interface
 */
export type RedlockOptions = CommonOptions & ((Only<'urls'> & RedisLoginOptions) | Only<'nodes'> | Only<'clients'>);

export type RedlockSettings = Required<CommonOptions>;

const WAYS = ['urls', 'nodes', 'clients'] as const;
const COMMON = ['prefix', 'requestTimeoutMs', 'maxSkewMs', 'restartQuarantineMs'];
const HOST_OPTIONS = ['host', 'port', 'username', 'password', 'tls', 'db'];
const REDIS_PORT = 6_379;

/** Fills in the defaults. @throws LockConfigurationError, which never shows a URL: it may have a password */
export function resolveRedlockOptions(given: RedlockOptions) {
  assertOptions(given, [...WAYS, 'credentials', 'tls', ...COMMON], 'redlock');
  const { prefix = 'redlock' } = given;
  const { requestTimeoutMs = 1_000, maxSkewMs = 1_000, restartQuarantineMs = 0 } = given;
  const [way, other] = WAYS.filter((name) => given[name] !== undefined);
  if (!way) return refuseOption('urls', 'or nodes or clients must be given');
  if (other) refuseOption(other, `and ${way} exclude each other: give one of them`);
  assertOptions(given, [way, ...(way === 'urls' ? ['credentials', 'tls'] : []), ...COMMON], `redlock({ ${way} })`);
  assertPrefix(prefix);
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, 60_000);
  assertNumber('maxSkewMs', maxSkewMs, 1, 3_600_000);
  assertNumber('restartQuarantineMs', restartQuarantineMs, 0, 2 ** 31 - 1);
  const nodes = nodesBy[way](given);
  const settings: RedlockSettings = { prefix, requestTimeoutMs, maxSkewMs, restartQuarantineMs };
  return { nodes: apart(way, nodes), settings };
}

const nodesBy = { urls: nodesAt, nodes: nodesOn, clients: nodesOf };

function nodesAt({ urls, ...login }: RedlockOptions & RedisLoginOptions) {
  assertLogin(login);
  return asList('urls', urls).map((url) => {
    const { host, port } = readRedisUrl('urls', url, ', each of them');
    return { name: `${host}:${port}`, source: createUrlSource(String(url), login) };
  });
}

function nodesOn({ nodes }: RedlockOptions) {
  return asList('nodes', nodes).map((node) => {
    assertOptions(node, HOST_OPTIONS, 'node');
    const { host = '', port = REDIS_PORT, ...access }: Partial<RedisHostOptions> = Object(node);
    const options = { host, port, ...access };
    assertHost(options);
    return { name: `${host}:${port}`, source: createHostSource(options) };
  });
}

function nodesOf({ clients }: RedlockOptions) {
  return asList('clients', clients).map((client, index) => {
    if (!isClient(client)) refuseOption('clients', 'must be ioredis clients, each of one server and none of a Cluster');
    return { name: nameOf(client) ?? `node ${index + 1}`, source: createGivenClientSource(client) };
  });
}

function asList(option: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0)
    refuseOption(option, 'must be a list, with an entry for each of the masters');
  return value;
}

/** Two votes of one server are one vote too many. */
function apart<Node extends { readonly name: string }>(option: string, nodes: readonly Node[]): readonly Node[] {
  const names = nodes.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) refuseOption(option, `must be different servers; ${twice} is there twice`);
  return nodes;
}

/** The address as ioredis knows it, or the name of a master under Sentinel. */
function nameOf({ options }: RedisClient): string | undefined {
  const { host, port, path, sentinels, name }: Partial<Record<string, unknown>> = Object(options);
  if (Array.isArray(sentinels)) return typeof name === 'string' ? name : undefined;
  if (typeof path === 'string') return path;
  return typeof host === 'string' && typeof port === 'number' ? `${host}:${port}` : undefined;
}
