import { type Holder, type HolderMetadata, LockConfigurationError, quote } from '../../core/index.js';
import { ServerRefusalError } from './error.js';
import type { HeldZnode } from './held-znode.js';
import { readHolder } from './znode-name.js';
import { ZnodeWatch } from './znode-watch.js';
import { createZnode, deleteZnode, type NewZnode, type OwnZnode, readZnode } from './znodes.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import type { ZooKeeperSession } from './session.js';
import type { ZooKeeperMode } from './options.js';
import type { AclEntry } from './transport/wire.js';

export interface QueueEntrySettings {
  readonly key: string;
  readonly owner: string;
  readonly metadata: HolderMetadata;
  /** Path above all keys. */
  readonly base: string;
  readonly acl: readonly AclEntry[];
}

/** Position in the queue: the owner's znode if it holds the key, otherwise the holder, as far as it is known. */
export type QueuePosition =
  { readonly znode: OwnZnode } | { readonly znode: null; readonly holder: Holder | undefined };

/** Function to call when the entry may have moved up; `undefined` for a caller that does not wait. */
export type Wake = (() => void) | undefined;

/**
 * Entry of an owner in the queue of a key: its znode within one session. The znode may not exist yet, or not be known
 * to exist.
 */
export abstract class QueueEntry {
  protected znode: OwnZnode | undefined;
  /** Whether a znode may exist that is not known, because the answer to its creation was lost. */
  protected isCreationInDoubt = false;
  protected readonly watch = new ZnodeWatch();
  /**
   * The owner's znode as what holds the key; `undefined` until the key is granted. `znode` is set as soon as the owner
   * waits.
   */
  heldZnode: HeldZnode | undefined;
  /** Release that is under way. */
  pendingRelease: Promise<boolean> | undefined;

  constructor(
    readonly session: ZooKeeperSession,
    protected readonly settings: QueueEntrySettings,
  ) {}

  /**
   * Creates the owner's znode unless it exists, and returns its position. After a lost connection it first finds out
   * whether the znode was created.
   * @throws ConnectionLostError: try again on the next connection; ServerRefusalError
   */
  abstract ensurePosition(wake: Wake): Promise<QueuePosition>;

  /** Finds the znode of this owner and session on the server. The creation is not in doubt afterwards. */
  protected abstract findOwnZnode(connection: ZooKeeperConnection): Promise<void>;

  /** Deletes the owner's znode. Returns whether it existed. @throws as `ensurePosition` */
  async release(): Promise<boolean> {
    const { connection } = this.session;
    if (this.isCreationInDoubt) await this.findOwnZnode(connection);
    const isDeleted = this.znode !== undefined && (await deleteZnode(connection, this.znode.path));
    this.znode = undefined;
    return isDeleted;
  }

  unwatch(): void {
    this.watch.end();
  }

  protected async createOwnZnode(connection: ZooKeeperConnection, path: string, newZnode: NewZnode): Promise<OwnZnode> {
    this.isCreationInDoubt = true;
    try {
      this.znode = await createZnode(connection, path, newZnode);
      this.isCreationInDoubt = false;
      return this.znode;
    } catch (error) {
      this.isCreationInDoubt = !(error instanceof ServerRefusalError);
      throw error;
    }
  }

  /**
   * Returns the position behind the znode `path` of another owner, with the holder from `holderPath`. Watches `path` if
   * there is a `wake`. Returns `null` if `path` was deleted.
   */
  protected async readPositionBehind(
    connection: ZooKeeperConnection,
    path: string,
    wake: Wake,
    holderPath = path,
  ): Promise<(QueuePosition & { znode: null }) | null> {
    const predecessorReading = wake ? this.watch.readAndWatch(connection, path, wake) : readZnode(connection, path);
    const holderReading = holderPath === path ? predecessorReading : readZnode(connection, holderPath);
    const [state, holderState] = await Promise.all([predecessorReading, holderReading]);
    return state && { znode: null, holder: holderState ? readHolder(holderState) : undefined };
  }

  protected mixedModesError(mode: ZooKeeperMode): LockConfigurationError {
    const { key } = this.settings;
    return new LockConfigurationError(`${quote(key)} is in use by mode ${mode}; all must use the same`, 'mode', key);
  }
}
