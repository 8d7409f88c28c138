import { assertNumber, assertOptions, refuseOption } from '../../core/index.js';
import {
  assertHostOptions,
  assertLoginOptions,
  type RedisHostOptions,
  type RedisLoginOptions,
} from '../redis/access-options.js';
import { createGivenClientSource, createHostSource, createUrlSource } from '../redis/connection/client-sources.js';
import type { NodeRedisClient } from '../redis/clients/node-redis-types.js';
import type { RedisClient } from '../redis/connection/redis-client.js';
import { isSingleServerClient } from '../redis/clients/given-client.js';
import { assertPrefix } from '../redis/options.js';
import { readRedisUrl } from '../redis/redis-url.js';

interface CommonOptions {
  /** Start of the names of all keys: letters, digits, `_`, `.`, `:` and `-`. @default 'redlock' */
  readonly prefix?: string;
  /**
   * Time after which a node that has not answered counts as failed. Only a decision that needs this answer waits for
   * it. A value below a third of the TTL, the interval of renewals, is best. @default 1_000
   */
  readonly requestTimeoutMs?: number;
  /**
   * Largest difference between a token and a node's clock. Nodes whose clocks differ by more never make a quorum.
   * @default 1_000
   */
  readonly maxSkewMs?: number;
  /**
   * Time after the start of a node in which it does not vote, because it may have lost leases that have not ended. Set
   * it to the longest `ttlMs` in use: otherwise a restart may let a second holder in, with a greater token. Needs
   * `INFO`.
   * @default 0
   */
  readonly restartQuarantineMs?: number;
}

interface NodeOptions {
  readonly urls: readonly string[];
  readonly nodes: readonly RedisHostOptions[];
  readonly clients: readonly (RedisClient | NodeRedisClient)[];
}

type ExclusiveNodeOption<Option extends keyof NodeOptions> = Pick<NodeOptions, Option> & {
  readonly [Other in Exclude<keyof NodeOptions, Option>]?: never;
};

/**
 * Options of `redlock`. With `urls`, which share `credentials` and `tls`, or with `nodes`, the backend makes its
 * connections and closes them. `clients`: clients of ioredis or node-redis (5 or 6) of the application, which are never
 * disconnected. Each server is a master without replicas. The number of servers should be odd.
 * @interface
 */
export type RedlockOptions = CommonOptions &
  ((ExclusiveNodeOption<'urls'> & RedisLoginOptions) | ExclusiveNodeOption<'nodes'> | ExclusiveNodeOption<'clients'>);

export type RedlockSettings = Required<CommonOptions>;

const NODE_OPTIONS = ['urls', 'nodes', 'clients'] as const;
const COMMON_OPTIONS = ['prefix', 'requestTimeoutMs', 'maxSkewMs', 'restartQuarantineMs'];
const HOST_OPTIONS = ['host', 'port', 'username', 'password', 'tls', 'db'];
const REDIS_PORT = 6_379;

/** @throws LockConfigurationError, which never shows a URL: it may have a password */
export function resolveRedlockOptions(options: RedlockOptions) {
  assertOptions(options, [...NODE_OPTIONS, 'credentials', 'tls', ...COMMON_OPTIONS], 'redlock');
  const { prefix = 'redlock' } = options;
  const { requestTimeoutMs = 1_000, maxSkewMs = 1_000, restartQuarantineMs = 0 } = options;
  const [option, secondOption] = NODE_OPTIONS.filter((name) => options[name] !== undefined);
  if (!option) return refuseOption('urls', 'or nodes or clients must be given');
  if (secondOption) refuseOption(secondOption, `and ${option} exclude each other: give one of them`);
  const loginOptions = option === 'urls' ? ['credentials', 'tls'] : [];
  assertOptions(options, [option, ...loginOptions, ...COMMON_OPTIONS], `redlock({ ${option} })`);
  assertPrefix(prefix);
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, 60_000);
  assertNumber('maxSkewMs', maxSkewMs, 1, 3_600_000);
  assertNumber('restartQuarantineMs', restartQuarantineMs, 0, 2 ** 31 - 1);
  const nodes = RESOLVERS_BY_OPTION[option](options);
  assertUniqueNames(option, nodes);
  const settings: RedlockSettings = { prefix, requestTimeoutMs, maxSkewMs, restartQuarantineMs };
  return { nodes, settings };
}

const RESOLVERS_BY_OPTION = { urls: resolveUrls, nodes: resolveHosts, clients: resolveClients };

function resolveUrls({ urls, ...login }: RedlockOptions & RedisLoginOptions) {
  assertLoginOptions(login);
  return requireList('urls', urls).map((url) => {
    const { host, port } = readRedisUrl('urls', url, ', each of them');
    return { name: `${host}:${port}`, source: createUrlSource(String(url), login) };
  });
}

function resolveHosts({ nodes }: RedlockOptions) {
  return requireList('nodes', nodes).map((node) => {
    assertOptions(node, HOST_OPTIONS, 'node');
    const { host = '', port = REDIS_PORT, ...access }: Partial<RedisHostOptions> = Object(node);
    const hostOptions = { host, port, ...access };
    assertHostOptions(hostOptions);
    return { name: `${host}:${port}`, source: createHostSource(hostOptions) };
  });
}

function resolveClients({ clients }: RedlockOptions) {
  return requireList('clients', clients).map((client, index) => {
    if (!isSingleServerClient(client))
      refuseOption('clients', 'must be clients of ioredis or redis, each of one server and none of a Cluster');
    return { name: serverNameOf(client) ?? `node ${index + 1}`, source: createGivenClientSource(client) };
  });
}

function requireList(option: string, value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0)
    refuseOption(option, 'must be a list, with an entry for each of the masters');
  return value;
}

/** A server that is named twice would have two votes. */
function assertUniqueNames(option: string, nodes: readonly { readonly name: string }[]): void {
  const names = nodes.map(({ name }) => name);
  const duplicate = names.find((name, index) => names.indexOf(name) < index);
  if (duplicate !== undefined) refuseOption(option, `must be different servers; ${duplicate} is there twice`);
}

function serverNameOf({ options }: RedisClient | NodeRedisClient): string | undefined {
  const fields: Partial<Record<string, unknown>> = Object(options);
  const { host, port, path, sentinels, name }: typeof fields = { ...fields, ...Object(fields.socket) };
  if (Array.isArray(sentinels)) return typeof name === 'string' ? name : undefined;
  if (typeof path === 'string') return path;
  return typeof host === 'string' && typeof port === 'number' ? `${host}:${port}` : undefined;
}
