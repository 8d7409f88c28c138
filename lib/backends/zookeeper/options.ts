import {
  areCredentials,
  assertNumber,
  assertOneOf,
  assertOptions,
  type Credentials,
  refuseOption,
  shownOption,
} from '../../core/index.js';
import { isPath, parseConnectString, type ServerAddress } from './connect-string.js';
import type { AclEntry } from './transport/wire.js';

export type ZooKeeperMode = 'sequential' | 'simple';

/** Rights on the nodes of the locks, as `setAcl` of zkCli takes them. */
export interface ZooKeeperAcl {
  /** `auth` with an empty id for the user of `credentials`; `digest` with `user:hash`; `world` with `anyone`; `ip`. */
  readonly scheme: string;
  readonly id: string;
  /** Letters of `cdrwa`: create, delete, read, write, admin. Locks need create, delete and read, permits also write. */
  readonly permissions: string;
}

export interface ZooKeeperOptions {
  /** All servers, and a path above all locks, if any: `zk1:2181,zk2:2181,zk3:2181/shop`. Created when missing. */
  readonly connectString: string;
  /**
   * How long the server keeps the locks of a silent process. This is the TTL of all its keys, whatever a call's `ttlMs`
   * says. The server allows 2 to 20 of its ticks and takes the nearest; `health` tells of a change. A holder trusts its
   * lock for two thirds of it. Below six ticks, 12 s by the server's defaults, a holder whose server is cut off from
   * the others may trust it for too long: `health` warns below 12 s.
   * @default 15_000
   */
  readonly sessionTtlMs?: number;
  /** The path that the keys lie under. Created when missing. @default '/locks' */
  readonly prefix?: string;
  /** How long a server may be silent before the next one is asked: at most a quarter of the session. @default 3_000 */
  readonly requestTimeoutMs?: number;
  /** How long a caller waits for a connection before `LockBackendError`. @default the TTL, at least 2_000 */
  readonly patienceMs?: number;
  /**
   * Digest authentication. Nodes then belong to this user with this password, unless `acl` says otherwise. Another
   * password is another owner, who may not change them.
   */
  readonly credentials?: Credentials;
  /** @default everything for the user of `credentials`, or for the whole world without */
  readonly acl?: readonly ZooKeeperAcl[];
  /**
   * `sequential`: waiters stand in line on the server, and each release wakes the next one only. `simple`: one node for
   * a key, which all waiters watch: each release wakes all of them, and they race. All processes that share a key must
   * use the same. @default 'sequential'
   */
  readonly mode?: ZooKeeperMode;
}

export interface ResolvedOptions extends Required<
  Pick<ZooKeeperOptions, 'sessionTtlMs' | 'requestTimeoutMs' | 'patienceMs' | 'mode'>
> {
  readonly servers: readonly ServerAddress[];
  /** The chroot and the prefix. */
  readonly base: string;
  /** As the digest scheme has it on the wire. */
  readonly auth: Buffer | undefined;
  readonly acl: readonly AclEntry[];
}

const MODES: readonly ZooKeeperMode[] = ['sequential', 'simple'];
const TIMES = ['sessionTtlMs', 'requestTimeoutMs', 'patienceMs'];
const OPTIONS = ['connectString', ...TIMES, 'prefix', 'credentials', 'acl', 'mode'];
/** Each letter stands for the next bit. */
const PERMISSIONS = 'rwcda';
const SHORTEST_SESSION_MS = 100;
/** A process that starts has to load the client, too. */
const SHORTEST_PATIENCE_MS = 2_000;
const LONGEST_MS = 2 ** 31 - 1;

/** Fills in the defaults. @throws LockConfigurationError naming the option; it repeats no password */
export function resolveZooKeeperOptions(options: ZooKeeperOptions): ResolvedOptions {
  assertOptions(options, OPTIONS, 'zookeeper');
  const { connectString, sessionTtlMs = 15_000, requestTimeoutMs = 3_000, prefix = '/locks' } = options;
  const { patienceMs = Math.max(sessionTtlMs, SHORTEST_PATIENCE_MS), credentials, mode = 'sequential' } = options;
  const { servers, chroot } = parseConnectString(connectString);
  assertNumber('sessionTtlMs', sessionTtlMs, SHORTEST_SESSION_MS, LONGEST_MS);
  assertNumber('requestTimeoutMs', requestTimeoutMs, 1, LONGEST_MS);
  assertNumber('patienceMs', patienceMs, 0, LONGEST_MS);
  if (!isPath(prefix)) {
    refuseOption('prefix', `must be a path such as /locks, without blanks; it was ${shownOption(prefix)}`);
  }
  assertOneOf('mode', mode, MODES);
  const auth = credentials === undefined ? undefined : digestOf(credentials);
  const acl = aclOf(options.acl ?? [{ ...(auth ? OWNER : EVERYBODY), permissions: 'cdrwa' }]);
  const times = { sessionTtlMs: Math.ceil(sessionTtlMs), requestTimeoutMs, patienceMs };
  return { servers, base: chroot + prefix, ...times, mode, auth, acl };
}

const OWNER = { scheme: 'auth', id: '' };
const EVERYBODY = { scheme: 'world', id: 'anyone' };

function digestOf(credentials: unknown): Buffer {
  if (!areCredentials(credentials) || credentials.username.includes(':')) {
    refuseOption('credentials', 'must be { username, password }, two texts, the first without a colon');
  }
  return Buffer.from(`${credentials.username}:${credentials.password}`);
}

function aclOf(entries: readonly ZooKeeperAcl[]): readonly AclEntry[] {
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
