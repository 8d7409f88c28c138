import type { SecureContextOptions } from 'node:tls';
import {
  areCredentials,
  assertNumber,
  assertOptions,
  assertText,
  type Credentials,
  type ValueOrGetter,
  refuseOption,
} from '../../core/index.js';

/** Options for TLS. Each one means the same as the option of this name in Node's `tls`. */
export type EtcdTls = Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'passphrase'> & {
  /** Name in the server's certificate, where it is not the host of the endpoint. */
  readonly servername?: string;
};

export interface EtcdOptions {
  /** URLs of the members of one cluster, such as `http://10.0.0.1:2379`. When one fails, the next one is used. */
  readonly endpoints: string | readonly string[];
  /**
   * User of etcd. Not needed where a client certificate names the user. If this is a function, the backend calls it for
   * each authentication.
   */
  readonly credentials?: ValueOrGetter<Credentials>;
  /**
   * TLS options for `https` endpoints. Not needed where Node knows the authority that signed the certificate. If
   * this is a function, the backend calls it for each new connection: certificates may be renewed meanwhile.
   */
  readonly tls?: EtcdTls | (() => EtcdTls);
  /**
   * Milliseconds for which the server keeps all locks of this process after its last heartbeat. This is the TTL of
   * every lease, whatever `ttlMs` a caller requests. It is rounded up to whole seconds, and etcd may raise it to a
   * minimum that follows from its election time-out.
   * @default 10_000
   */
  readonly sessionTtlMs?: number;
  /**
   * Start of the name of every key in etcd, as in `prefix/key`. May contain letters, digits, `_`, `.`, `:` and `-`.
   * @default 'lock'
   */
  readonly prefix?: string;
  /**
   * Milliseconds that a member may take to answer before the next one is used.
   * @default a fifth of the TTL, at most 2_000
   */
  readonly requestTimeoutMs?: number;
  /**
   * Milliseconds for which failed requests are repeated before the caller gets a `LockBackendError`. Meanwhile the
   * cluster can elect a new leader.
   * @default 5_000
   */
  readonly patienceMs?: number;
}

export interface ResolvedEtcdOptions extends Required<Omit<EtcdOptions, 'credentials'>> {
  readonly endpoints: readonly string[];
  readonly credentials: EtcdOptions['credentials'];
  readonly tls: () => EtcdTls;
}

const OPTION_NAMES = ['endpoints', 'credentials', 'tls', 'sessionTtlMs', 'prefix', 'requestTimeoutMs', 'patienceMs'];
const MAX_TIMER_MS = 2 ** 31 - 1;

/** @throws LockConfigurationError for an invalid option. Its message contains no URL and no credential */
export function resolveEtcdOptions(options: EtcdOptions): ResolvedEtcdOptions {
  assertOptions(options, OPTION_NAMES, 'etcd');
  const { credentials, tls, sessionTtlMs = 10_000, prefix = 'lock', patienceMs = 5_000 } = options;
  const { requestTimeoutMs = Math.min(sessionTtlMs / 5, 2_000) } = options;
  const endpoints = typeof options.endpoints === 'string' ? [options.endpoints] : options.endpoints;
  assertEndpoints(endpoints, tls !== undefined);
  if (credentials !== undefined && typeof credentials !== 'function' && !areCredentials(credentials)) {
    refuseOption('credentials', 'must be { username, password }, both of them text, or a function that returns them');
  }
  assertNumber('sessionTtlMs', sessionTtlMs, 1_000, 86_400_000);
  assertText('prefix', prefix, /^[\w.:-]{1,100}$/u, '1 to 100 letters, digits, "_", ".", ":" or "-"');
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, MAX_TIMER_MS);
  assertNumber('patienceMs', patienceMs, 0, MAX_TIMER_MS);
  const readTls = typeof tls === 'function' ? tls : () => tls ?? {};
  return { endpoints, credentials, tls: readTls, sessionTtlMs, prefix, requestTimeoutMs, patienceMs };
}

function assertEndpoints(endpoints: unknown, needsTls: boolean): void {
  if (!Array.isArray(endpoints) || endpoints.length === 0)
    refuseOption('endpoints', 'must be a URL, or a list of some');
  for (const endpoint of endpoints) {
    const url = typeof endpoint === 'string' && URL.canParse(endpoint) ? new URL(endpoint) : undefined;
    const isOriginUrl = url && url.username === '' && url.password === '' && url.pathname === '/' && url.search === '';
    if (!isOriginUrl || !/^https?:$/u.test(url.protocol)) {
      refuseOption(
        'endpoints',
        'must look like http://host:2379 or https://host:2379; users and passwords are credentials',
      );
    }
    if (needsTls && url.protocol !== 'https:') refuseOption('endpoints', 'must begin with https:// when tls is given');
  }
}
