import { LockConfigurationError } from '../../core/index.js';
import { isPath, parseConnectString, type ServerAddress } from './connect-string.js';
import type { AclEntry } from './transport/wire.js';

export type ZooKeeperMode = 'sequential' | 'simple';

/** Rights on the nodes that we make, as `setAcl` of zkCli takes them. */
export interface ZooKeeperAcl {
  /** `auth` with an empty id: whoever is authenticated as we are; `digest` with `user:hash`; `world` with `anyone`; `ip`. */
  readonly scheme: string;
  readonly id: string;
  /** Letters of `cdrwa`: create, delete, read, write, admin. We need create, delete and read. */
  readonly permissions: string;
}

export interface ZooKeeperOptions {
  /**
   * All servers of the ensemble, and a path that everything lies under, if you like: `zk1:2181,zk2:2181,zk3:2181/shop`. What of
   * the path is missing is created.
   */
  readonly connectString: string;
  /**
   * How long the server keeps the locks of a process that it does not hear from. One TTL for all keys of the process: no call's
   * `ttlMs` changes it. The server allows 2 to 20 of its ticks and takes the nearest; `health` says when that is another.
   * A holder trusts its lock for two thirds of it. Below six ticks, which are 12 s with the server's defaults, a holder whose
   * server is cut off from the others may trust it for too long: `health` warns below 12 s.
   * @default 15_000
   */
  readonly sessionTimeoutMs?: number;
  /** Where the keys are. Created when missing. @default '/locks' */
  readonly root?: string;
  /**
   * Digest authentication. Nodes then belong to this user with this password, unless `acl` says otherwise: another password is
   * another owner, who may not touch them.
   */
  readonly auth?: { readonly user: string; readonly password: string };
  /** @default everything for `auth`'s user, or for the whole world without `auth` */
  readonly acl?: readonly ZooKeeperAcl[];
  /**
   * `sequential`: waiters stand in line on the server, and each release wakes the next one only. `simple`: one node for a key,
   * which the losers watch: the server wakes all of them with each release, and they race. All processes that share a key must
   * use the same. @default 'sequential'
   */
  readonly mode?: ZooKeeperMode;
}

export interface ResolvedOptions {
  readonly servers: readonly ServerAddress[];
  /** The chroot and the root. */
  readonly base: string;
  readonly sessionTimeoutMs: number;
  readonly mode: ZooKeeperMode;
  readonly auth: Buffer | undefined;
  readonly acl: readonly AclEntry[];
}

const OPTIONS: ReadonlySet<string> = new Set(['connectString', 'sessionTimeoutMs', 'root', 'auth', 'acl', 'mode']);
const MODES: readonly string[] = ['sequential', 'simple'] satisfies ZooKeeperMode[];
const PERMISSIONS: Readonly<Record<string, number>> = { r: 1, w: 2, c: 4, d: 8, a: 16 };
const SHORTEST_SESSION_MS = 100;
const LONGEST_SESSION_MS = 2 ** 31 - 1;

/** Fills in what was left open. @throws LockConfigurationError naming the option; a password is never repeated */
export function resolveZooKeeperOptions(given: ZooKeeperOptions): ResolvedOptions {
  if (typeof given !== 'object' || given === null) refuse('options', `must be an object; they were ${show(given)}`);
  for (const name of Object.keys(given)) {
    if (!OPTIONS.has(name)) refuse(name, `is no zookeeper option; there are ${[...OPTIONS].join(', ')}`);
  }
  const { connectString, sessionTimeoutMs = 15_000, root = '/locks', auth, mode = 'sequential' } = given;
  const { servers, chroot } = parseConnectString(connectString);
  const isTime = typeof sessionTimeoutMs === 'number' && sessionTimeoutMs >= SHORTEST_SESSION_MS;
  if (!isTime || sessionTimeoutMs > LONGEST_SESSION_MS) {
    refuse(
      'sessionTimeoutMs',
      `must be a number from ${SHORTEST_SESSION_MS} to 2^31 - 1; it was ${show(sessionTimeoutMs)}`,
    );
  }
  if (!isPath(root)) refuse('root', `must be a path such as /locks, without blanks; it was ${show(root)}`);
  if (!MODES.includes(mode)) refuse('mode', `must be one of ${MODES.join(', ')}; it was ${show(mode)}`);
  const credentials = auth === undefined ? undefined : digestOf(auth);
  return {
    servers,
    base: chroot + root,
    sessionTimeoutMs: Math.ceil(sessionTimeoutMs),
    mode,
    auth: credentials,
    acl: aclOf(given.acl ?? defaultAcl(credentials !== undefined)),
  };
}

function digestOf(auth: unknown): Buffer {
  const given = typeof auth === 'object' && auth !== null ? auth : {};
  const { user, password }: { user?: unknown; password?: unknown } = given;
  if (typeof user !== 'string' || user === '' || user.includes(':') || typeof password !== 'string') {
    refuse('auth', 'must be { user, password }, two texts, the first without a colon');
  }
  return Buffer.from(`${user}:${password}`);
}

function defaultAcl(authenticated: boolean): readonly ZooKeeperAcl[] {
  return [
    { ...(authenticated ? { scheme: 'auth', id: '' } : { scheme: 'world', id: 'anyone' }), permissions: 'cdrwa' },
  ];
}

function aclOf(entries: readonly ZooKeeperAcl[]): readonly AclEntry[] {
  if (!Array.isArray(entries) || entries.length === 0) refuse('acl', 'must be a list of { scheme, id, permissions }');
  return entries.map((entry: Partial<ZooKeeperAcl> | null) => {
    const { scheme, id, permissions = '' } = entry ?? {};
    if (typeof scheme !== 'string' || typeof id !== 'string' || !/^[cdrwa]{1,5}$/u.test(permissions)) {
      refuse('acl', 'must be a list of { scheme, id, permissions }, permissions of the letters c, d, r, w and a');
    }
    return { scheme, id, permissions: bitsOf(permissions) };
  });
}

function bitsOf(permissions: string): number {
  const letters = Object.entries(PERMISSIONS).filter(([letter]) => permissions.includes(letter));
  return letters.reduce((sum, [, bit]) => sum + bit, 0);
}

function show(value: unknown): string {
  return typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? typeof value);
}

function refuse(option: string, problem: string): never {
  throw new LockConfigurationError(`${option} ${problem}`, option);
}
