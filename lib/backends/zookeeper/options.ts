import {
  areCredentials,
  assertNumber,
  assertOneOf,
  assertOptions,
  type Credentials,
  refuseOption,
  shownOption,
} from '../../core/index.js';
import { isZnodePath, parseConnectString, type ServerAddress } from './connect-string.js';
import type { AclEntry } from './transport/wire.js';

export type ZooKeeperMode = 'sequential' | 'simple';

/** Permissions on the znodes of the locks, in the terms of zkCli's `setAcl`. */
export interface ZooKeeperAcl {
  /**
   * Scheme: `auth` with an empty id for the user of `credentials`; `digest` with `user:hash`; `world` with `anyone`;
   * `ip`.
   */
  readonly scheme: string;
  readonly id: string;
  /**
   * Letters of `cdrwa`: create, delete, read, write, admin. Locks need create, delete and read; permits also need
   * write.
   */
  readonly permissions: string;
}

export interface ZooKeeperOptions {
  /**
   * All servers, and a path above all locks, if any: `zk1:2181,zk2:2181,zk3:2181/shop`. The path is created if missing.
   */
  readonly connectString: string;
  /**
   * Milliseconds for which the server keeps the locks of a silent process. This is the TTL of all its keys, whatever
   * `ttlMs` a call requests. The server allows 2 to 20 of its ticks and takes the nearest value; `health` warns of a
   * change. A holder trusts its lock for two thirds of this time. Six ticks are 12 s by the server's defaults. Below
   * that, a holder whose server is cut off from the others may trust its lock for too long, and `health` warns.
   * @default 15_000
   */
  readonly sessionTtlMs?: number;
  /** Path above all keys, created if missing. @default '/locks' */
  readonly prefix?: string;
  /**
   * Milliseconds that a server may be silent before the next one is used. A quarter of the session's time-out is the
   * limit, even if this option is greater.
   * @default 3_000
   */
  readonly requestTimeoutMs?: number;
  /** Milliseconds that a caller waits for a connection before `LockBackendError`. @default the TTL, at least 2_000 */
  readonly patienceMs?: number;
  /**
   * User of digest authentication. Znodes then belong to this user with this password, unless `acl` says otherwise.
   * ZooKeeper takes the same name with another password for another user, who may not change these znodes.
   */
  readonly credentials?: Credentials;
  /** Permissions on znodes. @default everything for the user of `credentials`, or for everybody without credentials */
  readonly acl?: readonly ZooKeeperAcl[];
  /**
   * Mode of waiting. `sequential`: waiters queue on the server, and each release wakes the next one only. `simple`: all
   * waiters watch one znode: each release wakes all of them, and they contend. All processes that share a key must use
   * the same mode.
   * @default 'sequential'
   */
  readonly mode?: ZooKeeperMode;
}

export interface ResolvedOptions extends Required<
  Pick<ZooKeeperOptions, 'sessionTtlMs' | 'requestTimeoutMs' | 'patienceMs' | 'mode'>
> {
  readonly servers: readonly ServerAddress[];
  /** Path above all keys: the chroot and the prefix. */
  readonly basePath: string;
  /** Credentials in the form of the digest scheme. */
  readonly auth: Buffer | undefined;
  readonly acl: readonly AclEntry[];
}

const MODES: readonly ZooKeeperMode[] = ['sequential', 'simple'];
const TIME_OPTIONS = ['sessionTtlMs', 'requestTimeoutMs', 'patienceMs'];
const OPTION_NAMES = ['connectString', ...TIME_OPTIONS, 'prefix', 'credentials', 'acl', 'mode'];
/** Letters of the permissions, in the order of their bits. */
const PERMISSIONS = 'rwcda';
const MIN_SESSION_MS = 100;
/** Minimum default of `patienceMs`: a process that starts also has to load the client library. */
const MIN_DEFAULT_PATIENCE_MS = 2_000;
const MAX_MS = 2 ** 31 - 1;

/** @throws LockConfigurationError that repeats no password */
export function resolveZooKeeperOptions(options: ZooKeeperOptions): ResolvedOptions {
  assertOptions(options, OPTION_NAMES, 'zookeeper');
  const { connectString, sessionTtlMs = 15_000, requestTimeoutMs = 3_000, prefix = '/locks' } = options;
  const { patienceMs = Math.max(sessionTtlMs, MIN_DEFAULT_PATIENCE_MS), credentials, mode = 'sequential' } = options;
  const { servers, chroot } = parseConnectString(connectString);
  assertNumber('sessionTtlMs', sessionTtlMs, MIN_SESSION_MS, MAX_MS);
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, MAX_MS);
  assertNumber('patienceMs', patienceMs, 0, MAX_MS);
  if (!isZnodePath(prefix)) {
    refuseOption('prefix', `must be a path such as /locks, without blanks; it was ${shownOption(prefix)}`);
  }
  assertOneOf('mode', mode, MODES);
  const auth = credentials === undefined ? undefined : encodeDigest(credentials);
  const acl = parseAcl(options.acl ?? [{ ...(auth ? OWNER_ACL : WORLD_ACL), permissions: 'cdrwa' }]);
  const times = { sessionTtlMs: Math.ceil(sessionTtlMs), requestTimeoutMs, patienceMs };
  return { servers, basePath: chroot + prefix, ...times, mode, auth, acl };
}

const OWNER_ACL = { scheme: 'auth', id: '' };
const WORLD_ACL = { scheme: 'world', id: 'anyone' };

function encodeDigest(credentials: unknown): Buffer {
  if (!areCredentials(credentials) || credentials.username.includes(':')) {
    refuseOption('credentials', 'must be { username, password }, two texts, the first without a colon');
  }
  return Buffer.from(`${credentials.username}:${credentials.password}`);
}

function parseAcl(entries: readonly ZooKeeperAcl[]): readonly AclEntry[] {
  if (!Array.isArray(entries) || entries.length === 0) refuseAcl();
  return entries.map((entry: Partial<ZooKeeperAcl> | null) => {
    const { scheme, id, permissions = '' } = entry ?? {};
    if (typeof scheme !== 'string' || typeof id !== 'string' || !/^[cdrwa]{1,5}$/u.test(permissions)) refuseAcl();
    const bits = permissions.split('').reduce((sum, letter) => sum | (1 << PERMISSIONS.indexOf(letter)), 0);
    return { scheme, id, permissions: bits };
  });
}

function refuseAcl(): never {
  refuseOption('acl', 'must be a list of { scheme, id, permissions }, permissions of the letters c, d, r, w and a');
}
