import { assertNumber, assertOptions, refuseOption } from '../../core/index.js';
import { givenSource, urlSource } from '../redis/connection/client-factory.js';
import type { RedisClient } from '../redis/connection/redis-client.js';
import { assertPrefix, assertUrl, isClient } from '../redis/options.js';

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

/**
 * `urls`: the backend makes its connections and closes them. `clients`: ioredis clients (5 or 6) of yours, which are
 * never closed and never cut. Each server is a master that replicates nothing; best an odd number of them.
 * @interface
 */
export type RedlockOptions = CommonOptions &
  (
    | { readonly urls: readonly string[]; readonly clients?: never }
    | { readonly clients: readonly RedisClient[]; readonly urls?: never }
  );

export type RedlockSettings = Required<CommonOptions>;

const OPTIONS = ['urls', 'clients', 'prefix', 'requestTimeoutMs', 'maxSkewMs', 'restartQuarantineMs'];

/** Fills in the defaults. @throws LockConfigurationError, which never shows a URL: it may have a password */
export function resolveRedlockOptions(given: RedlockOptions) {
  assertOptions(given, OPTIONS, 'redlock');
  const { urls, clients, prefix = 'redlock' } = given;
  const { requestTimeoutMs = 1_000, maxSkewMs = 1_000, restartQuarantineMs = 0 } = given;
  if (urls !== undefined && clients !== undefined)
    refuseOption('clients', 'and urls exclude each other: give one of them');
  assertPrefix(prefix);
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, 60_000);
  assertNumber('maxSkewMs', maxSkewMs, 1, 3_600_000);
  assertNumber('restartQuarantineMs', restartQuarantineMs, 0, 2 ** 31 - 1);
  const nodes = clients === undefined ? nodesAt(urls) : nodesOf(clients);
  const settings: RedlockSettings = { prefix, requestTimeoutMs, maxSkewMs, restartQuarantineMs };
  return { nodes: apart(clients === undefined ? 'urls' : 'clients', nodes), settings };
}

function nodesAt(urls: unknown) {
  if (urls === undefined) refuseOption('urls', 'or clients must be given');
  return asList('urls', urls).map((url) => {
    assertUrl('urls', url, ', each of them');
    return { name: addressOf(new URL(url)), source: urlSource(url) };
  });
}

function nodesOf(clients: unknown) {
  return asList('clients', clients).map((client, index) => {
    if (!isClient(client)) refuseOption('clients', 'must be ioredis clients, each of one server and none of a Cluster');
    return { name: nameOf(client) ?? `node ${index + 1}`, source: givenSource(client) };
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

function addressOf({ hostname, port }: URL): string {
  return `${hostname === '' ? 'localhost' : hostname}:${port === '' ? '6379' : port}`;
}

/** The address as ioredis knows it, or the name of a master under Sentinel. */
function nameOf({ options }: RedisClient): string | undefined {
  const { host, port, path, sentinels, name }: Partial<Record<string, unknown>> = Object(options);
  if (Array.isArray(sentinels)) return typeof name === 'string' ? name : undefined;
  if (typeof path === 'string') return path;
  return typeof host === 'string' && typeof port === 'number' ? `${host}:${port}` : undefined;
}
