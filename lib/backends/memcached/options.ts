import type { ConnectionOptions } from 'node:tls';
import { type Clock, LockConfigurationError, systemClock } from '../../core/index.js';
import { areCredentials, type MemcachedCredentials } from './credentials.js';
import type { Given } from './given.js';

export type MemcachedProtocol = 'auto' | 'meta' | 'classic';

export interface MemcachedOptions {
  /**
   * `host:port`, or `host` for port 11211; several as a list, or with commas. Keys are spread over them, so all processes must
   * name the same servers in the same words; a server that is down takes its keys with it. Another list is another index for
   * most keys: to change it, stop all processes, delete `<prefix>:servers` on every server, and start them with the new one.
   */
  readonly servers: string | readonly string[];
  /** What the names of all our items begin with: letters, digits, `_`, `.` and `-`. @default 'lock' */
  readonly prefix?: string;
  /** How long a connection may take to come about. @default 1_000 */
  readonly connectTimeoutMs?: number;
  /**
   * How long the server may take to answer before its connection is given up. Best below a third of the TTL. What is lost on a
   * connection that was idle for as long is asked once more on a new one.
   * @default 1_000
   */
  readonly commandTimeoutMs?: number;
  /** `auto`: the meta commands where the server has them, else the classic ones. Processes may differ. @default 'auto' */
  readonly protocol?: MemcachedProtocol;
  /**
   * Speaks TLS, with these options of `node:tls`. A server is told the name it was given by, unless that is an address or
   * there is a `servername` here. A function is asked for each connection. @default plain text
   */
  readonly tls?: Given<ConnectionOptions>;
  /**
   * A user of a memcached that was started with `-Y`, its file of users. Goes over the network as it is: use `tls`. A function
   * is asked for each connection. Only told to a server that asks. @default none
   */
  readonly credentials?: Given<MemcachedCredentials>;
}

export interface ServerAddress {
  /** As it was given: what keys are spread by. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

export interface ResolvedMemcachedOptions extends Required<Omit<MemcachedOptions, 'servers' | 'tls' | 'credentials'>> {
  readonly servers: readonly ServerAddress[];
  readonly tls: Given<ConnectionOptions> | undefined;
  readonly credentials: Given<MemcachedCredentials> | undefined;
  readonly clock: Clock;
}

const DEFAULT_PORT = 11_211;
const LONGEST_TIMEOUT_MS = 60_000;
const PROTOCOLS: readonly string[] = ['auto', 'meta', 'classic'] satisfies MemcachedProtocol[];
const OPTIONS: ReadonlySet<string> = new Set([
  'servers',
  'prefix',
  'connectTimeoutMs',
  'commandTimeoutMs',
  'protocol',
  'tls',
  'credentials',
]);

/** Fills in what was left open. @throws LockConfigurationError naming the option, what it was and what it may be */
export function resolveMemcachedOptions(given: MemcachedOptions): ResolvedMemcachedOptions {
  if (typeof given !== 'object' || given === null) refuse('options', `must be an object; they were ${show(given)}`);
  for (const name of Object.keys(given)) {
    if (!OPTIONS.has(name)) refuse(name, `is no memcached option; there are ${[...OPTIONS].join(', ')}`);
  }
  const { prefix = 'lock', connectTimeoutMs = 1_000, commandTimeoutMs = 1_000, protocol = 'auto' } = given;
  const { tls, credentials } = given;
  if (typeof prefix !== 'string' || !/^[\w.-]{1,100}$/u.test(prefix)) {
    refuse('prefix', `must be 1 to 100 letters, digits, "_", "." or "-"; it was ${show(prefix)}`);
  }
  for (const [name, value] of Object.entries({ connectTimeoutMs, commandTimeoutMs })) {
    if (typeof value !== 'number' || !(value >= 1 && value <= LONGEST_TIMEOUT_MS)) {
      refuse(name, `must be a number from 1 to ${LONGEST_TIMEOUT_MS}; it was ${show(value)}`);
    }
  }
  if (!PROTOCOLS.includes(protocol)) {
    refuse('protocol', `must be one of ${PROTOCOLS.join(', ')}; it was ${show(protocol)}`);
  }
  if (tls !== undefined && typeof tls !== 'function' && (typeof tls !== 'object' || tls === null)) {
    refuse('tls', 'must be an object of options for node:tls, or a function that returns one');
  }
  if (credentials !== undefined && typeof credentials !== 'function' && !areCredentials(credentials)) {
    refuse('credentials', 'must be { user, password } without blanks, the user without a colon, or a function');
  }
  const servers = serversOf(given.servers);
  return { servers, prefix, connectTimeoutMs, commandTimeoutMs, protocol, tls, credentials, clock: systemClock };
}

function serversOf(given: unknown): readonly ServerAddress[] {
  const names: unknown = typeof given === 'string' ? given.split(',').map((name) => name.trim()) : given;
  if (!Array.isArray(names) || names.length === 0) {
    refuse('servers', `must be a list of "host:port"; they were ${show(given)}`);
  }
  if (new Set(names).size < names.length) refuse('servers', `must not name a server twice; they were ${show(given)}`);
  return names.map(addressOf);
}

function addressOf(name: unknown): ServerAddress {
  const address = /^(?:\[(?<v6>[\d:a-f.]+)\]|(?<host>[^\s:/@[\],]+))(?::(?<port>\d{1,5}))?$/iu;
  const { v6, host = v6, port = DEFAULT_PORT } = (typeof name === 'string' && address.exec(name)?.groups) || {};
  if (typeof name === 'string' && host !== undefined && Number(port) >= 1 && Number(port) <= 65_535) {
    return { name, host, port: Number(port) };
  }
  return refuse('servers', `must look like "host", "host:11211" or "[::1]:11211"; one was ${show(name)}`);
}

function show(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
}

function refuse(option: string, problem: string): never {
  throw new LockConfigurationError(`${option} ${problem}`, option);
}
