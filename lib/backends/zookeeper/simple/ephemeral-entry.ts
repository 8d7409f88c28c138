import type { LeaseState } from '../../../core/index.js';
import { dataOf, holderOf, nameOfKey, ownerOf } from '../node-name.js';
import { createParents, deleteNode, type OwnNode, readNode } from '../nodes.js';
import { QueueEntry, type QueuePosition, type Wake } from '../queue-entry.js';
import type { ZooKeeperConnection } from '../transport/connection.js';
import { isRefusal, NO_NODE, NODE_EXISTS } from '../error.js';
import { EPHEMERAL, PERSISTENT } from '../transport/wire.js';

const NO_SESSION = Buffer.alloc(8);

/**
 * The key is one ephemeral node: the owner that creates it has the key. All others wait for its end and race for the
 * next. All holders share the path by which a node is deleted, so a release first reads which owner it has. An operator
 * who deletes a node in between lets that release free the next holder's: `sequential` has no such gap.
 */
export class EphemeralEntry extends QueueEntry {
  static async holds(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    const state = await readNode(connection, `${base}/${nameOfKey(key)}`);
    return state !== null && ownerOf(state) === owner;
  }

  static async isHeld(connection: ZooKeeperConnection, base: string, key: string): Promise<boolean> {
    return (await readNode(connection, `${base}/${nameOfKey(key)}`)) !== null;
  }

  static async look(connection: ZooKeeperConnection, base: string, key: string): Promise<LeaseState> {
    const state = await readNode(connection, `${base}/${nameOfKey(key)}`);
    if (!state) return {};
    const owner = ownerOf(state);
    return { holder: { owner: typeof owner === 'string' ? owner : '', fencingToken: state.czxid, ...holderOf(state) } };
  }

  /** Has the gap of a release: it may hit the next owner of the same moment. */
  static async evict(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    const isOwners = await EphemeralEntry.holds(connection, base, key, owner);
    return isOwners && deleteNode(connection, `${base}/${nameOfKey(key)}`);
  }

  readonly #path = `${this.settings.base}/${nameOfKey(this.settings.key)}`;

  async look(wake: Wake): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      if (this.isUncertain || this.node) await this.find(connection);
      const node = this.node ?? (await this.#enter(connection));
      if (node) return { node };
      const position = await this.watchPredecessor(connection, this.#path, wake);
      if (position && !position.holder) await this.#assertMode(connection);
      if (position) return position;
    }
  }

  override release(): Promise<boolean> {
    this.isUncertain ||= this.node !== undefined;
    return super.release();
  }

  /** `undefined`: another owner has it. */
  async #enter(connection: ZooKeeperConnection): Promise<OwnNode | undefined> {
    const { acl, base, metadata, owner } = this.settings;
    try {
      return await this.create(connection, this.#path, { acl, data: dataOf(metadata, owner), flags: EPHEMERAL });
    } catch (error) {
      if (isRefusal(error, NODE_EXISTS)) return undefined;
      if (!isRefusal(error, NO_NODE)) throw error;
    }
    await createParents(connection, base, acl, PERSISTENT);
    return this.#enter(connection);
  }

  protected async find(connection: ZooKeeperConnection): Promise<void> {
    const state = await readNode(connection, this.#path);
    const isOwn = state?.session.equals(this.session.ticket.id) === true && ownerOf(state) === this.settings.owner;
    this.node = isOwn ? { path: this.#path, czxid: state.czxid } : undefined;
    this.isUncertain = false;
  }

  /** A node without a session would be in the way for ever. */
  async #assertMode(connection: ZooKeeperConnection): Promise<void> {
    const state = await readNode(connection, this.#path);
    if (state?.session.equals(NO_SESSION) === true) throw this.mixedModes('sequential');
  }
}
