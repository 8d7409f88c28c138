import type { LeaseState } from '../../../core/index.js';
import { encodeData, readHolder, encodeKey, parseOwnerOfData } from '../znode-name.js';
import { createWithParents, deleteZnode, type OwnZnode, readZnode } from '../znodes.js';
import { QueueEntry, type QueuePosition, type Wake } from '../queue-entry.js';
import type { ZooKeeperConnection } from '../transport/connection.js';
import { isRefusal, NO_NODE, NODE_EXISTS } from '../error.js';
import { EPHEMERAL, PERSISTENT } from '../transport/wire.js';

const NO_SESSION_ID = Buffer.alloc(8);

/**
 * Ephemeral znode that is the key: the owner that creates it holds the key. All others wait for its deletion, and
 * contend.
 *
 * A release first reads the owner in the znode, because all holders share its path. If an operator deletes the znode in
 * between, that release may delete the next holder's: mode `sequential` has no such gap.
 */
export class EphemeralEntry extends QueueEntry {
  static async isHeldBy(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    const state = await readZnode(connection, `${base}/${encodeKey(key)}`);
    return state !== null && parseOwnerOfData(state) === owner;
  }

  static async isHeld(connection: ZooKeeperConnection, base: string, key: string): Promise<boolean> {
    return (await readZnode(connection, `${base}/${encodeKey(key)}`)) !== null;
  }

  static async readState(connection: ZooKeeperConnection, base: string, key: string): Promise<LeaseState> {
    const state = await readZnode(connection, `${base}/${encodeKey(key)}`);
    if (!state) return {};
    const owner = parseOwnerOfData(state);
    return {
      holder: { owner: typeof owner === 'string' ? owner : '', fencingToken: state.czxid, ...readHolder(state) },
    };
  }

  /** Like a release, may hit the next owner at the same moment. */
  static async evict(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    const isHolder = await EphemeralEntry.isHeldBy(connection, base, key, owner);
    return isHolder && deleteZnode(connection, `${base}/${encodeKey(key)}`);
  }

  readonly #path = `${this.settings.base}/${encodeKey(this.settings.key)}`;

  async ensurePosition(wake: Wake): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      if (this.isCreationInDoubt || this.znode) await this.findOwnZnode(connection);
      const znode = this.znode ?? (await this.#createZnode(connection));
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

  async #createZnode(connection: ZooKeeperConnection): Promise<OwnZnode | undefined> {
    const { acl, base, metadata, owner } = this.settings;
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
    await createWithParents(connection, base, acl, PERSISTENT);
    return this.#createZnode(connection);
  }

  protected async findOwnZnode(connection: ZooKeeperConnection): Promise<void> {
    const state = await readZnode(connection, this.#path);
    const isOwn =
      state?.session.equals(this.session.identity.id) === true && parseOwnerOfData(state) === this.settings.owner;
    this.znode = isOwn ? { path: this.#path, czxid: state.czxid } : undefined;
    this.isCreationInDoubt = false;
  }

  /** The znode of mode `sequential` belongs to no session, so that a wait for its end would never end. */
  async #assertSimpleMode(connection: ZooKeeperConnection): Promise<void> {
    const state = await readZnode(connection, this.#path);
    if (state?.session.equals(NO_SESSION_ID) === true) throw this.mixedModesError('sequential');
  }
}
