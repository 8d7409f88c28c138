import type { SecureContextOptions } from 'node:tls';
import { LockConfigurationError } from '../../core/index.js';

/** What Node's `tls` knows by the same names. */
export type EtcdTls = Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'passphrase'> & {
  /** The name in the server's certificate, where it is not the host of the endpoint. */
  readonly servername?: string;
};

export interface EtcdCredentials {
  readonly username: string;
  /** A function is asked whenever etcd wants to know again who we are: for passwords that change while the process lives. */
  readonly password: string | (() => string | Promise<string>);
}

export interface EtcdOptions {
  /** Members of one cluster, such as `http://10.0.0.1:2379`; the next one is asked when one fails. */
  readonly endpoints: string | readonly string[];
  /** For a cluster with authentication. A user whom a client certificate names needs none. */
  readonly credentials?: EtcdCredentials;
  /**
   * Needs `https` endpoints, which do without where the certificate is signed by an authority that Node knows. A function is
   * asked at each new connection: for certificates that are renewed while the process lives.
   */
  readonly tls?: EtcdTls | (() => EtcdTls);
  /**
   * How long the server keeps all locks of this process without a sign of life from it, and so the TTL of every lease,
   * whatever `ttlMs` a caller asks for. The heartbeat is a third of it. A server may have a minimum, by its election time-out.
   * @default 10
   */
  readonly ttlSeconds?: number;
  /** What the names of all our keys begin with, before a slash: letters, digits, `_`, `.`, `:` and `-`. @default 'lock' */
  readonly prefix?: string;
  /** How long a member may take to answer before the next one is asked. @default a fifth of the TTL, at most 2_000 */
  readonly requestTimeoutMs?: number;
  /** How long failures in a row are asked again before `LockBackendError`: elections take a while. @default 5_000 */
  readonly patienceMs?: number;
}

export interface ResolvedEtcdOptions {
  readonly endpoints: readonly string[];
  readonly credentials: EtcdOptions['credentials'];
  readonly tls: () => EtcdTls;
  readonly ttlSeconds: number;
  readonly prefix: string;
  readonly requestTimeoutMs: number;
  readonly patienceMs: number;
}

const OPTIONS: ReadonlySet<string> = new Set([
  'endpoints',
  'credentials',
  'tls',
  'ttlSeconds',
  'prefix',
  'requestTimeoutMs',
  'patienceMs',
] satisfies (keyof EtcdOptions)[]);

/** Fills in what was left open. @throws LockConfigurationError naming the option; no URL and no credential is ever repeated */
export function resolveEtcdOptions(given: EtcdOptions): ResolvedEtcdOptions {
  if (typeof given !== 'object' || given === null) refuse('options', `must be an object; they were ${show(given)}`);
  for (const name of Object.keys(given)) {
    if (!OPTIONS.has(name)) refuse(name, `is no etcd option; there are ${[...OPTIONS].join(', ')}`);
  }
  const { credentials, tls, ttlSeconds = 10, prefix = 'lock', patienceMs = 5_000 } = given;
  const { requestTimeoutMs = Math.min(ttlSeconds * 200, 2_000) } = given;
  const endpoints = typeof given.endpoints === 'string' ? [given.endpoints] : given.endpoints;
  assertEndpoints(endpoints, tls !== undefined);
  if (credentials !== undefined) assertCredentials(credentials);
  if (!Number.isInteger(ttlSeconds) || ttlSeconds < 1 || ttlSeconds > 86_400) {
    refuse('ttlSeconds', `must be a whole number from 1 to 86400; it was ${show(ttlSeconds)}`);
  }
  if (typeof prefix !== 'string' || !/^[\w.:-]{1,100}$/u.test(prefix)) {
    refuse('prefix', `must be 1 to 100 letters, digits, "_", ".", ":" or "-"; it was ${show(prefix)}`);
  }
  assertDuration('requestTimeoutMs', requestTimeoutMs, 1);
  assertDuration('patienceMs', patienceMs, 0);
  return {
    endpoints,
    credentials,
    tls: typeof tls === 'function' ? tls : () => tls ?? {},
    ttlSeconds,
    prefix,
    requestTimeoutMs,
    patienceMs,
  };
}

function assertEndpoints(endpoints: unknown, needTls: boolean): asserts endpoints is readonly string[] {
  if (!Array.isArray(endpoints) || endpoints.length === 0) refuse('endpoints', 'must be a URL, or a list of some');
  for (const endpoint of endpoints) {
    const url = typeof endpoint === 'string' && URL.canParse(endpoint) ? new URL(endpoint) : undefined;
    const plain = url && url.username === '' && url.password === '' && url.pathname === '/' && url.search === '';
    if (!plain || !/^https?:$/u.test(url.protocol)) {
      refuse('endpoints', 'must look like http://host:2379 or https://host:2379; users and passwords are credentials');
    }
    if (needTls && url.protocol !== 'https:') refuse('endpoints', 'must begin with https:// when tls is given');
  }
}

function assertCredentials(credentials: unknown): void {
  const { username, password }: { username?: unknown; password?: unknown } = { ...Object(credentials) };
  const known = typeof password === 'string' || typeof password === 'function';
  if (typeof username !== 'string' || username === '' || !known) {
    refuse('credentials', 'must be { username, password }, both of them text; the password may be a function, too');
  }
}

function assertDuration(option: string, value: unknown, min: number): void {
  if (typeof value === 'number' && value >= min && value <= 2 ** 31 - 1) return;
  refuse(option, `must be a number of ms from ${min} up; it was ${show(value)}`);
}

function show(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
}

function refuse(option: string, problem: string): never {
  throw new LockConfigurationError(`${option} ${problem}`, option);
}
