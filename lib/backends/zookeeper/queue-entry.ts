import { type Holder, type HolderMetadata, LockConfigurationError, quote } from '../../core/index.js';
import { ServerRefusalError } from './error.js';
import type { HeldNode } from './held-node.js';
import { holderOf } from './node-name.js';
import { NodeWatch } from './node-watch.js';
import { createNode, deleteNode, type NewNode, type OwnNode, readNode } from './nodes.js';
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

/** The owner has the key, or another owner is in the way. */
export type QueuePosition = { readonly node: OwnNode } | { readonly node: null; readonly holder: Holder | undefined };

/** Called when another look is worth it. A caller without one does not wait. */
export type Wake = (() => void) | undefined;

/** The node that an owner has on the server within one session, or may have. */
export abstract class QueueEntry {
  protected node: OwnNode | undefined;
  /** A node may have been created: the answer was lost. */
  protected isUncertain = false;
  protected readonly watch = new NodeWatch();
  /** The node by which the owner holds the key; `undefined` before the first grant. */
  held: HeldNode | undefined;
  /** The release that is under way. */
  releasing: Promise<boolean> | undefined;

  constructor(
    readonly session: ZooKeeperSession,
    protected readonly settings: QueueEntrySettings,
  ) {}

  /**
   * Creates the node unless it exists. After a lost connection it first finds out whether it was created.
   * @throws ConnectionLostError: look again over the next one; ServerRefusalError
   */
  abstract look(wake: Wake): Promise<QueuePosition>;

  /** Looks on the server for the node of this owner and session, and is certain then. */
  protected abstract find(connection: ZooKeeperConnection): Promise<void>;

  /** Deletes the owner's node, and no other. Whether there was one. @throws as `look` */
  async release(): Promise<boolean> {
    const { connection } = this.session;
    if (this.isUncertain) await this.find(connection);
    const released = this.node !== undefined && (await deleteNode(connection, this.node.path));
    this.node = undefined;
    return released;
  }

  /** `wake` is called no more. */
  unwatch(): void {
    this.watch.end();
  }

  protected async create(connection: ZooKeeperConnection, path: string, how: NewNode): Promise<OwnNode> {
    this.isUncertain = true;
    try {
      this.node = await createNode(connection, path, how);
      this.isUncertain = false;
      return this.node;
    } catch (error) {
      this.isUncertain = !(error instanceof ServerRefusalError);
      throw error;
    }
  }

  /** Reads another owner's node, and has `wake` called at its end. `null`: it is gone. */
  protected async watchPredecessor(
    connection: ZooKeeperConnection,
    path: string,
    wake: Wake,
    holderPath = path,
  ): Promise<(QueuePosition & { node: null }) | null> {
    const asked = wake ? this.watch.read(connection, path, wake) : readNode(connection, path);
    const askedForHolder = holderPath === path ? asked : readNode(connection, holderPath);
    const [state, first] = await Promise.all([asked, askedForHolder]);
    return state && { node: null, holder: first ? holderOf(first) : undefined };
  }

  protected mixedModes(mode: ZooKeeperMode): LockConfigurationError {
    const { key } = this.settings;
    return new LockConfigurationError(`${quote(key)} is in use by mode ${mode}; all must use the same`, 'mode', key);
  }
}
