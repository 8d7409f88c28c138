import type { LeaseState } from '../../../core/index.js';
import { encodeData, readHolder, encodeNamePart, parseOwnerOfData } from '../znode-name.js';
import { createWithParents, deleteZnode, type OwnZnode, readZnode } from '../znodes.js';
import { QueueEntry, type QueuePosition, type Wake } from '../queue-entry.js';
import type { ZooKeeperConnection } from '../transport/connection.js';
import { isRefusal, NO_NODE, NODE_EXISTS } from '../error.js';
import { EPHEMERAL, PERSISTENT } from '../transport/wire.js';

const NO_SESSION_ID = Buffer.alloc(8);

/**
 * Ephemeral znode that stands for the key: the owner that creates the znode holds the key. All other owners wait until
 * the znode is deleted, and then contend.
 *
 * A release first reads the owner in the znode, because all holders share its path. If an operator deletes the znode
 * between the reading and the deletion, the release may delete the next holder's znode. This cannot happen in mode
 * `sequential`.
 */
export class EphemeralEntry extends QueueEntry {
  static async isHeldBy(
    connection: ZooKeeperConnection,
    basePath: string,
    key: string,
    owner: string,
  ): Promise<boolean> {
    const state = await readZnode(connection, `${basePath}/${encodeNamePart(key)}`);
    return state !== null && parseOwnerOfData(state) === owner;
  }

  static async isHeld(connection: ZooKeeperConnection, basePath: string, key: string): Promise<boolean> {
    return (await readZnode(connection, `${basePath}/${encodeNamePart(key)}`)) !== null;
  }

  static async readLeaseState(connection: ZooKeeperConnection, basePath: string, key: string): Promise<LeaseState> {
    const state = await readZnode(connection, `${basePath}/${encodeNamePart(key)}`);
    if (!state) return {};
    const owner = parseOwnerOfData(state);
    return {
      holder: { owner: typeof owner === 'string' ? owner : '', fencingToken: state.czxid, ...readHolder(state) },
    };
  }

  /** May delete the next holder's znode if the key changes hands between the reading and the deletion. */
  static async evict(connection: ZooKeeperConnection, basePath: string, key: string, owner: string): Promise<boolean> {
    const isHolder = await EphemeralEntry.isHeldBy(connection, basePath, key, owner);
    return isHolder && deleteZnode(connection, `${basePath}/${encodeNamePart(key)}`);
  }

  readonly #path = `${this.settings.basePath}/${encodeNamePart(this.settings.key)}`;

  async ensurePosition(wake: Wake): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      if (this.isCreationInDoubt || this.znode) await this.findOwnZnode(connection);
      const znode = this.znode ?? (await this.#tryToCreateZnode(connection));
      if (znode) return { znode };
      const position = await this.readPositionBehind(connection, this.#path, wake);
      if (position && !position.holder) await this.#assertSimpleMode(connection);
      if (position) return position;
    }
  }

  /** Forces a reading before the deletion, because the next holder's znode has the same path. */
  override release(): Promise<boolean> {
    this.isCreationInDoubt ||= this.znode !== undefined;
    return super.release();
  }

  async #tryToCreateZnode(connection: ZooKeeperConnection): Promise<OwnZnode | undefined> {
    const { acl, basePath, metadata, owner } = this.settings;
    try {
      return await this.createOwnZnode(connection, this.#path, {
        acl,
        data: encodeData(metadata, owner),
        flags: EPHEMERAL,
      });
    } catch (error) {
      if (isRefusal(error, NODE_EXISTS)) return undefined;
      if (!isRefusal(error, NO_NODE)) throw error;
    }
    await createWithParents(connection, basePath, acl, PERSISTENT);
    return this.#tryToCreateZnode(connection);
  }

  protected async findOwnZnode(connection: ZooKeeperConnection): Promise<void> {
    const state = await readZnode(connection, this.#path);
    const isOwn =
      state?.sessionId.equals(this.session.identity.id) === true && parseOwnerOfData(state) === this.settings.owner;
    this.znode = isOwn ? { path: this.#path, czxid: state.czxid } : undefined;
    this.isCreationInDoubt = false;
  }

  /** Throws if mode `sequential` made the znode. No session owns that znode, so a waiter could wait for ever. */
  async #assertSimpleMode(connection: ZooKeeperConnection): Promise<void> {
    const state = await readZnode(connection, this.#path);
    if (state?.sessionId.equals(NO_SESSION_ID) === true) throw this.createMixedModesError('sequential');
  }
}
