import { isRefusal, NO_NODE, NODE_EXISTS } from './error.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import { type AclEntry, CONTAINER, PERSISTENT, type RequestFields } from './transport/wire.js';

/** Znode of this process, with the number of the transaction that created it. No other znode ever has this number. */
export interface OwnZnode {
  readonly path: string;
  readonly czxid: bigint;
}

export interface ZnodeState {
  readonly czxid: bigint;
  readonly ctime: Buffer;
  readonly data: Buffer | undefined;
  /** Id of the session whose end deletes the znode; zeros if none. */
  readonly sessionId: Buffer;
}

export type NewZnode = Required<Pick<RequestFields, 'data' | 'acl' | 'flags'>>;

/** @throws ServerRefusalError with `NO_NODE` if the parent is missing */
export async function createZnode(
  connection: ZooKeeperConnection,
  path: string,
  newZnode: NewZnode,
): Promise<OwnZnode> {
  const answer = await connection.send('create', { path, ...newZnode }, `create a node in ${getParentPath(path)}`);
  return { path: answer.data?.toString() ?? path, czxid: answer.stat.czxid.readBigInt64BE() };
}

/**
 * Creates a znode unless it exists. Also creates missing parents, as persistent znodes. The server deletes a container
 * by itself when the last child is gone.
 */
export async function createWithParents(
  connection: ZooKeeperConnection,
  path: string,
  acl: readonly AclEntry[],
  flags: typeof CONTAINER | typeof PERSISTENT,
): Promise<void> {
  const operation = flags === CONTAINER ? 'createContainer' : 'createPersistent';
  try {
    await connection.send(operation, { path, acl, flags, data: Buffer.alloc(0) }, `create ${path}`);
  } catch (error) {
    if (isRefusal(error, NODE_EXISTS)) return;
    if (!isRefusal(error, NO_NODE) || getParentPath(path) === '/') throw error;
    await createWithParents(connection, getParentPath(path), acl, PERSISTENT);
    await createWithParents(connection, path, acl, flags);
  }
}

/** Returns `null`, and watches nothing, if the znode does not exist. */
export async function readZnode(
  connection: ZooKeeperConnection,
  path: string,
  shouldWatch = false,
): Promise<ZnodeState | null> {
  const fields = { path, watch: shouldWatch };
  const request = connection.send('read', fields, `read a node in ${getParentPath(path)}`);
  const answer = await resolveUnlessMissing(request, null);
  if (!answer) return null;
  const { data, stat } = answer;
  return { czxid: stat.czxid.readBigInt64BE(), ctime: stat.ctime, data, sessionId: stat.ephemeralOwner };
}

/** Returns no names, and watches nothing, if the znode does not exist. */
export async function listChildren(
  connection: ZooKeeperConnection,
  path: string,
  shouldWatch = false,
): Promise<readonly string[]> {
  const request = connection.send('children', { path, watch: shouldWatch }, `list ${path}`);
  const answer = await resolveUnlessMissing(request, null);
  return answer?.children ?? [];
}

export async function writeZnode(connection: ZooKeeperConnection, { path }: OwnZnode, data: Buffer): Promise<void> {
  await connection.send('write', { path, data, version: -1 }, `write a node in ${getParentPath(path)}`);
}

export function deleteZnode(connection: ZooKeeperConnection, path: string): Promise<boolean> {
  const request = connection.send('delete', { path, version: -1 }, `delete a node in ${getParentPath(path)}`);
  return resolveUnlessMissing(
    request.then(() => true),
    false,
  );
}

/** Resolves to `otherwise` if the server answers that the znode does not exist. */
async function resolveUnlessMissing<T, Otherwise>(request: Promise<T>, otherwise: Otherwise): Promise<T | Otherwise> {
  try {
    return await request;
  } catch (error) {
    if (isRefusal(error, NO_NODE)) return otherwise;
    throw error;
  }
}

export function getParentPath(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

export function getZnodeName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
