import type { ConnectionOptions } from 'node:tls';
import {
  areCredentials,
  assertNumber,
  assertOneOf,
  assertOptions,
  assertText,
  type Credentials,
  type ValueOrGetter,
  refuseOption,
  shownOption,
} from '../../core/index.js';

export type MemcachedProtocol = 'auto' | 'meta' | 'classic';

export interface MemcachedOptions {
  /**
   * Servers as `host:port`, or `host` for port 11211; several as a list, or with commas. Keys are spread over them: all
   * processes must give the same list, with the same spelling. The keys of a server that is down cannot be locked. A
   * change of the list moves most keys. Before a change, stop all processes, and delete the item `<prefix>:servers`,
   * which records the list, on every server.
   */
  readonly servers: string | readonly string[];
  /** Start of the name of every item: letters, digits, `_`, `.` and `-`. @default 'lock' */
  readonly prefix?: string;
  /** Milliseconds that a connection may take to be established. @default 1_000 */
  readonly connectTimeoutMs?: number;
  /**
   * Milliseconds that a server may take to answer before its connection is closed. Best below a third of the TTL, the
   * interval of renewals. If a connection was idle for at least this time and a request gets no reply, the request is
   * sent again over a new connection.
   * @default 1_000
   */
  readonly requestTimeoutMs?: number;
  /** Milliseconds for which requests that fail are repeated before `LockBackendError`. @default 2_000 */
  readonly patienceMs?: number;
  /**
   * Commands to use. `auto`: the meta commands where the server has them, otherwise the classic ones. Processes may
   * use different ones.
   * @default 'auto'
   */
  readonly protocol?: MemcachedProtocol;
  /**
   * Options of `node:tls`; `servername` is by default the host, unless the host is an IP address. A function is called
   * for each connection.
   * @default plain text
   */
  readonly tls?: ValueOrGetter<ConnectionOptions>;
  /**
   * User and password for a memcached that was started with `-Y <file of users>`. The credentials are sent as plain
   * text, only to a server that requires them: use `tls`. A function is called for each connection.
   * @default none
   */
  readonly credentials?: ValueOrGetter<Credentials>;
}

export interface ServerAddress {
  /** Address as the option spells it. The spelling decides which keys the server gets. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

export interface ResolvedMemcachedOptions extends Required<Omit<MemcachedOptions, 'servers' | 'tls' | 'credentials'>> {
  readonly servers: readonly ServerAddress[];
  readonly tls: ValueOrGetter<ConnectionOptions> | undefined;
  readonly credentials: ValueOrGetter<Credentials> | undefined;
}

/** Patterns of credentials: a blank ends the username on the wire, and a colon ends it in the file of users. */
const USERNAME_PATTERN = /^[^\s:\p{C}]{1,100}$/u;
const PASSWORD_PATTERN = /^[^\s\p{C}]{1,100}$/u;
const DEFAULT_PORT = 11_211;
const MAX_TIMEOUT_MS = 60_000;
const PROTOCOLS: readonly MemcachedProtocol[] = ['auto', 'meta', 'classic'];
const TIME_OPTIONS = ['connectTimeoutMs', 'requestTimeoutMs', 'patienceMs'];
const OPTION_NAMES = ['servers', 'prefix', ...TIME_OPTIONS, 'protocol', 'tls', 'credentials'];

/** @throws LockConfigurationError */
export function resolveMemcachedOptions(options: MemcachedOptions): ResolvedMemcachedOptions {
  assertOptions(options, OPTION_NAMES, 'memcached');
  const { prefix = 'lock', connectTimeoutMs = 1_000, requestTimeoutMs = 1_000, patienceMs = 2_000 } = options;
  const { protocol = 'auto', tls, credentials } = options;
  assertText('prefix', prefix, /^[\w.-]{1,100}$/u, '1 to 100 letters, digits, "_", "." or "-"');
  assertNumber('connectTimeoutMs', connectTimeoutMs, 1, MAX_TIMEOUT_MS);
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, MAX_TIMEOUT_MS);
  assertNumber('patienceMs', patienceMs, 0, Infinity);
  assertOneOf('protocol', protocol, PROTOCOLS);
  if (tls !== undefined && typeof tls !== 'function' && (typeof tls !== 'object' || tls === null)) {
    refuseOption('tls', 'must be an object of options for node:tls, or a function that returns one');
  }
  if (credentials !== undefined && typeof credentials !== 'function' && !areMemcachedCredentials(credentials)) {
    refuseOption(
      'credentials',
      'must be { username, password } without blanks, the username without a colon, or a function',
    );
  }
  const servers = parseServers(options.servers);
  return { servers, prefix, connectTimeoutMs, requestTimeoutMs, patienceMs, protocol, tls, credentials };
}

export function areMemcachedCredentials(value: unknown): value is Credentials {
  return areCredentials(value) && USERNAME_PATTERN.test(value.username) && PASSWORD_PATTERN.test(value.password);
}

function parseServers(servers: unknown): readonly ServerAddress[] {
  const names: unknown = typeof servers === 'string' ? servers.split(',').map((name) => name.trim()) : servers;
  if (!Array.isArray(names) || names.length === 0) {
    refuseOption('servers', `must be a list of "host:port"; they were ${shownOption(servers)}`);
  }
  if (new Set(names).size < names.length) {
    refuseOption('servers', `must not name a server twice; they were ${shownOption(servers)}`);
  }
  return names.map(parseServer);
}

function parseServer(name: unknown): ServerAddress {
  const addressPattern = /^(?:\[(?<v6>[\d:a-f.]+)\]|(?<host>[^\s:/@[\],]+))(?::(?<port>\d{1,5}))?$/iu;
  const { v6, host = v6, port = DEFAULT_PORT } = (typeof name === 'string' && addressPattern.exec(name)?.groups) || {};
  if (typeof name === 'string' && host !== undefined && Number(port) >= 1 && Number(port) <= 65_535) {
    return { name, host, port: Number(port) };
  }
  return refuseOption('servers', `must look like "host", "host:11211" or "[::1]:11211"; one was ${shownOption(name)}`);
}
