import type { SecureContextOptions } from 'node:tls';
import {
  areCredentials,
  assertNumber,
  assertOptions,
  assertText,
  type Credentials,
  type Given,
  refuseOption,
} from '../../core/index.js';

/** Options of Node's `tls` with the same names. */
export type EtcdTls = Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'passphrase'> & {
  /** The name in the server's certificate, where it is not the host of the endpoint. */
  readonly servername?: string;
};

export interface EtcdOptions {
  /** Members of one cluster, such as `http://10.0.0.1:2379`; the next one is asked when one fails. */
  readonly endpoints: string | readonly string[];
  /** Not needed where a client certificate names the user. A function is asked at each authentication. */
  readonly credentials?: Given<Credentials>;
  /**
   * Needs `https` endpoints. They do without it where Node knows the authority that signed the certificate. A function
   * is asked at each new connection, for certificates that are renewed while the process lives.
   */
  readonly tls?: EtcdTls | (() => EtcdTls);
  /**
   * How long the server keeps all locks of this process without a sign of life from it. This is the TTL of every lease,
   * whatever `ttlMs` a caller asks for. etcd counts whole seconds, and may have a minimum by its election time-out.
   * @default 10_000
   */
  readonly sessionTtlMs?: number;
  /** Begins the name of every key, before a slash: letters, digits, `_`, `.`, `:` and `-`. @default 'lock' */
  readonly prefix?: string;
  /** How long a member may take to answer before the next one is asked. @default a fifth of the TTL, at most 2_000 */
  readonly requestTimeoutMs?: number;
  /** How long failures in a row are asked again before `LockBackendError`: elections take a while. @default 5_000 */
  readonly patienceMs?: number;
}

export interface ResolvedEtcdOptions extends Required<Omit<EtcdOptions, 'credentials'>> {
  readonly endpoints: readonly string[];
  readonly credentials: EtcdOptions['credentials'];
  readonly tls: () => EtcdTls;
}

const OPTIONS = ['endpoints', 'credentials', 'tls', 'sessionTtlMs', 'prefix', 'requestTimeoutMs', 'patienceMs'];
const LONGEST_MS = 2 ** 31 - 1;

/** Fills in the defaults. @throws LockConfigurationError naming the option; it repeats no URL and no credential */
export function resolveEtcdOptions(options: EtcdOptions): ResolvedEtcdOptions {
  assertOptions(options, OPTIONS, 'etcd');
  const { credentials, tls, sessionTtlMs = 10_000, prefix = 'lock', patienceMs = 5_000 } = options;
  const { requestTimeoutMs = Math.min(sessionTtlMs / 5, 2_000) } = options;
  const endpoints = typeof options.endpoints === 'string' ? [options.endpoints] : options.endpoints;
  assertEndpoints(endpoints, tls !== undefined);
  if (credentials !== undefined && typeof credentials !== 'function' && !areCredentials(credentials)) {
    refuseOption('credentials', 'must be { username, password }, both of them text, or a function that returns them');
  }
  assertNumber('sessionTtlMs', sessionTtlMs, 1_000, 86_400_000);
  assertText('prefix', prefix, /^[\w.:-]{1,100}$/u, '1 to 100 letters, digits, "_", ".", ":" or "-"');
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, LONGEST_MS);
  assertNumber('patienceMs', patienceMs, 0, LONGEST_MS);
  const currentTls = typeof tls === 'function' ? tls : () => tls ?? {};
  return { endpoints, credentials, tls: currentTls, sessionTtlMs, prefix, requestTimeoutMs, patienceMs };
}

function assertEndpoints(endpoints: unknown, needTls: boolean): void {
  if (!Array.isArray(endpoints) || endpoints.length === 0)
    refuseOption('endpoints', 'must be a URL, or a list of some');
  for (const endpoint of endpoints) {
    const url = typeof endpoint === 'string' && URL.canParse(endpoint) ? new URL(endpoint) : undefined;
    const plain = url && url.username === '' && url.password === '' && url.pathname === '/' && url.search === '';
    if (!plain || !/^https?:$/u.test(url.protocol)) {
      refuseOption(
        'endpoints',
        'must look like http://host:2379 or https://host:2379; users and passwords are credentials',
      );
    }
    if (needTls && url.protocol !== 'https:') refuseOption('endpoints', 'must begin with https:// when tls is given');
  }
}
