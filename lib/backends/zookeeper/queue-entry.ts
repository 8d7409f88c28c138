import { type Holder, type HolderMetadata, LockConfigurationError, quote } from '../../core/index.js';
import { holderOf } from './node-name.js';
import type { NodeWatch } from './node-watch.js';
import { type OwnNode, readNode } from './nodes.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import type { ZooKeeperSession } from './session.js';
import type { ZooKeeperMode } from './options.js';
import type { AclEntry } from './transport/wire.js';

export interface QueueEntrySettings {
  readonly key: string;
  readonly owner: string;
  readonly metadata: HolderMetadata;
  /** The path that all keys lie under. */
  readonly base: string;
  readonly acl: readonly AclEntry[];
}

/** The owner has the key, or somebody is in the way. */
export type QueuePosition = { readonly node: OwnNode } | { readonly node: null; readonly holder: Holder | undefined };

/** The node that an owner has on the server within one session, or may have. */
export interface QueueEntry {
  readonly session: ZooKeeperSession;
  /**
   * Creates the node if there is none. After a lost connection it first finds out whether it was created. `wake` is
   * called when another look is worth it.
   * @throws ConnectionLostError: look again over the next one; ServerRefusalError
   */
  look(wake: (() => void) | undefined): Promise<QueuePosition>;
  /** Deletes the owner's node, and no other. Whether there was one. @throws as `look` */
  release(): Promise<boolean>;
  /** `wake` is called no more. */
  unwatch(): void;
}

/**
 * Reads another owner's node, and has `wake` called at its end. `null`: it is gone. `holderPath`: the holder's node.
 */
export async function watchPredecessor(
  connection: ZooKeeperConnection,
  path: string,
  { watch, wake, holderPath = path }: { watch: NodeWatch; wake: (() => void) | undefined; holderPath?: string },
): Promise<(QueuePosition & { node: null }) | null> {
  const asked = wake ? watch.read(connection, path, wake) : readNode(connection, path);
  const askedForHolder = holderPath === path ? asked : readNode(connection, holderPath);
  const [state, first] = await Promise.all([asked, askedForHolder]);
  return state && { node: null, holder: first ? holderOf(first) : undefined };
}

export function mixedModes(key: string, mode: ZooKeeperMode): LockConfigurationError {
  return new LockConfigurationError(`${quote(key)} is in use by mode ${mode}; all must use the same`, 'mode', key);
}
