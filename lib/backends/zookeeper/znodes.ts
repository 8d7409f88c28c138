import { isRefusal, NO_NODE, NODE_EXISTS } from './error.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import { type AclEntry, CONTAINER, PERSISTENT, type RequestFields } from './transport/wire.js';

/** A node of this process, and the number of the transaction that created it: no other node ever has the same. */
export interface OwnNode {
  readonly path: string;
  readonly czxid: bigint;
}

export interface NodeState {
  readonly czxid: bigint;
  readonly ctime: Buffer;
  readonly data: Buffer | undefined;
  /** The id of the session that it ends with. */
  readonly session: Buffer;
}

export type NewNode = Required<Pick<RequestFields, 'data' | 'acl' | 'flags'>>;

/** @throws ServerRefusalError NO_NODE without a parent */
export async function createNode(connection: ZooKeeperConnection, path: string, how: NewNode): Promise<OwnNode> {
  const answer = await connection.ask('create', { path, ...how }, `create a node in ${parentOf(path)}`);
  return { path: answer.data?.toString() ?? path, czxid: answer.stat.czxid.readBigInt64BE() };
}

/**
 * Creates the node, and as persistent ones all above it that are missing. The server removes a container when empty.
 */
export async function createParents(
  connection: ZooKeeperConnection,
  path: string,
  acl: readonly AclEntry[],
  flags: typeof CONTAINER | typeof PERSISTENT,
): Promise<void> {
  const name = flags === CONTAINER ? 'createContainer' : 'createPersistent';
  try {
    await connection.ask(name, { path, acl, flags, data: Buffer.alloc(0) }, `create ${path}`);
  } catch (error) {
    if (isRefusal(error, NODE_EXISTS)) return;
    if (!isRefusal(error, NO_NODE) || parentOf(path) === '/') throw error;
    await createParents(connection, parentOf(path), acl, PERSISTENT);
    await createParents(connection, path, acl, flags);
  }
}

/** `null` when it does not exist; then nothing is watched. */
export async function readNode(
  connection: ZooKeeperConnection,
  path: string,
  watch = false,
): Promise<NodeState | null> {
  const asked = connection.ask('read', { path, watch }, `read a node in ${parentOf(path)}`);
  const answer = await unlessMissing(asked, null);
  if (!answer) return null;
  const { data, stat } = answer;
  return { czxid: stat.czxid.readBigInt64BE(), ctime: stat.ctime, data, session: stat.ephemeralOwner };
}

/** None where the node does not exist; then nothing is watched. */
export async function childrenOf(
  connection: ZooKeeperConnection,
  path: string,
  watch = false,
): Promise<readonly string[]> {
  const answer = await unlessMissing(connection.ask('children', { path, watch }, `list ${path}`), null);
  return answer?.children ?? [];
}

/** @throws ServerRefusalError NO_NODE, and also without the right to write */
export async function writeNode(connection: ZooKeeperConnection, { path }: OwnNode, data: Buffer): Promise<void> {
  await connection.ask('write', { path, data, version: -1 }, `write a node in ${parentOf(path)}`);
}

/** Whether it was there. */
export function deleteNode(connection: ZooKeeperConnection, path: string): Promise<boolean> {
  const asked = connection.ask('delete', { path, version: -1 }, `delete a node in ${parentOf(path)}`);
  return unlessMissing(
    asked.then(() => true),
    false,
  );
}

async function unlessMissing<T, Otherwise>(asked: Promise<T>, otherwise: Otherwise): Promise<T | Otherwise> {
  try {
    return await asked;
  } catch (error) {
    if (isRefusal(error, NO_NODE)) return otherwise;
    throw error;
  }
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
