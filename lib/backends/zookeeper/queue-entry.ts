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
  readonly basePath: string;
  readonly acl: readonly AclEntry[];
}

/** Position of an owner. `znode` is set if the owner holds the key. Otherwise `holder` is the holder, if known. */
export type QueuePosition =
  { readonly znode: OwnZnode } | { readonly znode: null; readonly holder: Holder | undefined };

/** Function to call when the entry may have moved up; `undefined` for a caller that does not wait. */
export type Wake = (() => void) | undefined;

export abstract class QueueEntry {
  protected znode: OwnZnode | undefined;
  /** Whether the server may have a znode that is not in `znode`, because the answer to its creation was lost. */
  protected isCreationInDoubt = false;
  protected readonly watch = new ZnodeWatch();
  /** Znode of an owner that was granted the key. In mode `sequential`, `znode` is set as soon as the owner waits. */
  heldZnode: HeldZnode | undefined;
  pendingRelease: Promise<boolean> | undefined;

  constructor(
    readonly session: ZooKeeperSession,
    protected readonly settings: QueueEntrySettings,
  ) {}

  /**
   * Enters the queue unless the owner is in it, and returns the position.
   * @throws ConnectionLostError: try again on the next connection; ServerRefusalError
   */
  abstract ensurePosition(wake: Wake): Promise<QueuePosition>;

  /** Looks for the owner's znode on the server, sets `znode` if it is found, and clears `isCreationInDoubt`. */
  protected abstract findOwnZnode(connection: ZooKeeperConnection): Promise<void>;

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
   * Reads the holder from `holderPath`, and watches `path` for a caller that waits. Returns `null` if `path` was
   * deleted.
   */
  protected async readPositionBehind(
    connection: ZooKeeperConnection,
    path: string,
    wake: Wake,
    holderPath = path,
  ): Promise<(QueuePosition & { znode: null }) | null> {
    const predecessorReading = wake ? this.watch.readAndWatch(connection, path, wake) : readZnode(connection, path);
    const holderReading = holderPath === path ? predecessorReading : readZnode(connection, holderPath);
    const [predecessorState, holderState] = await Promise.all([predecessorReading, holderReading]);
    return predecessorState && { znode: null, holder: holderState ? readHolder(holderState) : undefined };
  }

  protected createMixedModesError(mode: ZooKeeperMode): LockConfigurationError {
    const { key } = this.settings;
    return new LockConfigurationError(`${quote(key)} is in use by mode ${mode}; all must use the same`, 'mode', key);
  }
}
