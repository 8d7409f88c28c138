import { LockConfigurationError } from '../../core/index.js';
import type { RedisClient } from './redis-client.js';

export type RedisMode = 'queue' | 'plain' | 'getset';

interface CommonOptions {
  /**
   * `queue`: waiters stand in line on the server and are handed the key. `plain`: `SET NX PX` and nothing else on the server,
   * waiters poll. `getset`: for servers and proxies without scripting; see `GetsetLeaseStore` for its limits. All processes
   * that share a key must use the same. @default 'queue'
   */
  readonly mode?: RedisMode;
  /** What the names of all our keys and channels begin with: letters, digits, `_`, `.`, `:` and `-`. @default 'lock' */
  readonly prefix?: string;
  /** How long the server may take to answer a command before it counts as failed. Best below a third of the TTL. @default 1_000 */
  readonly commandTimeoutMs?: number;
}

/**
 * `url`: we make the connections, with our own settings, and close them. `client`: an ioredis client (5 or 6) of yours, for
 * Sentinel, TLS or a shared connection; it is never closed and never cut. The subscription uses a duplicate of it.
 */
export type RedisOptions = CommonOptions &
  ({ readonly url: string; readonly client?: never } | { readonly client: RedisClient; readonly url?: never });

const MODES: readonly string[] = ['queue', 'plain', 'getset'] satisfies RedisMode[];
const OPTIONS: ReadonlySet<string> = new Set(['url', 'client', 'mode', 'prefix', 'commandTimeoutMs']);
const CLIENT_METHODS = ['call', 'pipeline', 'duplicate', 'connect', 'disconnect', 'on', 'off'] as const;

/** Fills in what was left open. @throws LockConfigurationError naming the option; a URL is never repeated, for its password */
export function resolveRedisOptions(given: RedisOptions): RedisOptions & Required<CommonOptions> {
  if (typeof given !== 'object' || given === null) refuse('options', `must be an object; they were ${show(given)}`);
  for (const name of Object.keys(given)) {
    if (!OPTIONS.has(name)) refuse(name, `is no redis option; there are ${[...OPTIONS].join(', ')}`);
  }
  const { url, client, mode = 'queue', prefix = 'lock', commandTimeoutMs = 1_000 } = given;
  if (url !== undefined && client !== undefined) refuse('client', 'and url exclude each other: give one of them');
  if (client === undefined) assertUrl(url);
  else assertClient(client);
  if (!MODES.includes(mode)) refuse('mode', `must be one of ${MODES.join(', ')}; it was ${show(mode)}`);
  if (typeof prefix !== 'string' || !/^[\w.:-]{1,100}$/u.test(prefix)) {
    refuse('prefix', `must be 1 to 100 letters, digits, "_", ".", ":" or "-"; it was ${show(prefix)}`);
  }
  if (typeof commandTimeoutMs !== 'number' || !(commandTimeoutMs >= 1 && commandTimeoutMs <= 60_000)) {
    refuse('commandTimeoutMs', `must be a number from 1 to 60000; it was ${show(commandTimeoutMs)}`);
  }
  return { ...given, mode, prefix, commandTimeoutMs };
}

function assertUrl(url: unknown): void {
  if (url === undefined) refuse('url', 'or client must be given');
  const ok = typeof url === 'string' && URL.canParse(url) && /^rediss?:$/u.test(new URL(url).protocol);
  if (!ok) refuse('url', 'must look like redis://user:password@host:6379/0 or rediss://…');
}

function assertClient(client: unknown): void {
  if (typeof client !== 'object' || client === null)
    refuse('client', `must be an ioredis client; it was ${show(client)}`);
  const missing = CLIENT_METHODS.filter((name) => typeof Reflect.get(client, name) !== 'function');
  if (missing.length > 0) refuse('client', `must be an ioredis client; it has no ${missing.join(', ')}`);
  if (Reflect.get(client, 'isCluster') === true) {
    refuse(
      'client',
      'must not be a Cluster: one call renews many keys, which lie in many slots. Give a client of one server',
    );
  }
}

function show(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
}

function refuse(option: string, problem: string): never {
  throw new LockConfigurationError(`${option} ${problem}`, option);
}
