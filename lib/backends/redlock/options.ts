import { assertNumber, assertOptions, assertText, refuseOption } from '../../core/index.js';
import { givenSource, urlSource } from '../redis/connection/client-source.js';
import type { ClientSource, RedisClient } from '../redis/connection/redis-client.js';

interface CommonOptions {
  /** Begins the names of all keys: letters, digits, `_`, `.`, `:` and `-`. @default 'redlock' */
  readonly prefix?: string;
  /**
   * How long a node may take to answer before it counts as failed. Only a decision that needs its answer waits so long. Best
   * below a third of the TTL. @default 1_000
   */
  readonly requestTimeoutMs?: number;
  /** How far a token may be from a node's clock. Nodes whose clocks differ by more never make a quorum. @default 1_000 */
  readonly maxSkewMs?: number;
  /**
   * How long a node does not vote after its start: until the leases that it may have forgotten have ended. Set it to the longest
   * `ttlMs` in use, or a restart may let a second holder in, with a greater fencing token. Needs the right to `INFO`. @default 0
   */
  readonly restartQuarantineMs?: number;
}

/**
 * `urls`: the backend makes its connections and closes them. `clients`: ioredis clients (5 or 6) of yours, which are never
 * closed and never cut. Each server is a master that replicates nothing; best an odd number of them.
 */
export type RedlockOptions = CommonOptions &
  (
    | { readonly urls: readonly string[]; readonly clients?: never }
    | { readonly clients: readonly RedisClient[]; readonly urls?: never }
  );

export interface ResolvedOptions extends Required<CommonOptions> {
  readonly nodes: readonly { readonly name: string; readonly source: ClientSource }[];
}

const OPTIONS = ['urls', 'clients', 'prefix', 'requestTimeoutMs', 'maxSkewMs', 'restartQuarantineMs'];
const CLIENT_METHODS = ['call', 'duplicate', 'connect', 'disconnect', 'on', 'off'] as const;

/** Fills in the defaults. @throws LockConfigurationError that names the option, and never shows a URL: it may have a password */
export function resolveRedlockOptions(given: RedlockOptions): ResolvedOptions {
  assertOptions(given, OPTIONS, 'redlock');
  const { urls, clients, prefix = 'redlock' } = given;
  const { requestTimeoutMs = 1_000, maxSkewMs = 1_000, restartQuarantineMs = 0 } = given;
  if (urls !== undefined && clients !== undefined)
    refuseOption('clients', 'and urls exclude each other: give one of them');
  assertText('prefix', prefix, /^[\w.:-]{1,100}$/u, '1 to 100 letters, digits, "_", ".", ":" or "-"');
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, 60_000);
  assertNumber('maxSkewMs', maxSkewMs, 1, 3_600_000);
  assertNumber('restartQuarantineMs', restartQuarantineMs, 0, 2 ** 31 - 1);
  const nodes = clients === undefined ? nodesAt(urls) : nodesOf(clients);
  return { nodes, prefix, requestTimeoutMs, maxSkewMs, restartQuarantineMs };
}

function nodesAt(urls: unknown): ResolvedOptions['nodes'] {
  if (urls === undefined) refuseOption('urls', 'or clients must be given');
  const nodes = asList('urls', urls).map((url) => {
    const ok = typeof url === 'string' && URL.canParse(url) && /^rediss?:$/u.test(new URL(url).protocol);
    if (!ok) refuseOption('urls', 'must look like redis://user:password@host:6379/0 or rediss://…, each of them');
    return { name: addressOf(new URL(url)), source: urlSource(url) };
  });
  return apart('urls', nodes);
}

function nodesOf(clients: unknown): ResolvedOptions['nodes'] {
  const nodes = asList('clients', clients).map((client, index) => {
    if (!isClient(client)) refuseOption('clients', 'must be ioredis clients, each of one server and none of a Cluster');
    return { name: nameOf(client) ?? `node ${index + 1}`, source: givenSource(client) };
  });
  return apart('clients', nodes);
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

function isClient(client: unknown): client is RedisClient {
  if (typeof client !== 'object' || client === null || Reflect.get(client, 'isCluster') === true) return false;
  return CLIENT_METHODS.every((name) => typeof Reflect.get(client, name) === 'function');
}

/** The address as ioredis knows it, or the name of a master under Sentinel. */
function nameOf(client: RedisClient): string | undefined {
  const options: unknown = Reflect.get(client, 'options');
  if (typeof options !== 'object' || options === null) return undefined;
  const { host, port, path, sentinels, name } = options as Partial<Record<string, unknown>>;
  if (Array.isArray(sentinels)) return typeof name === 'string' ? name : undefined;
  if (typeof path === 'string') return path;
  return typeof host === 'string' && typeof port === 'number' ? `${host}:${port}` : undefined;
}
