import { dataOf, nameOfKey, ownerOf } from '../node-name.js';
import { NodeWatch } from '../node-watch.js';
import { createNode, createParents, deleteNode, type OwnNode, readNode } from '../nodes.js';
import {
  mixedModes,
  type QueueEntry,
  type QueueEntrySettings,
  type QueuePosition,
  watchPredecessor,
} from '../queue-entry.js';
import type { ZooKeeperConnection } from '../transport/connection.js';
import { isRefusal, NO_NODE, NODE_EXISTS, ServerRefusalError } from '../error.js';
import type { ZooKeeperSession } from '../session.js';
import { EPHEMERAL, PERSISTENT } from '../transport/wire.js';

const NO_SESSION = Buffer.alloc(8);

/**
 * The key is one ephemeral node: the owner that creates it has the key, and all others wait for its end and race for
 * the next. A node can only be deleted by its path, which all holders share, so a release reads first whose it is. An
 * operator who deletes a node in between lets that release free the next holder's: `sequential` has no such gap.
 */
export class EphemeralEntry implements QueueEntry {
  /** The owner that has `key` now. */
  static async ownerOf(connection: ZooKeeperConnection, base: string, key: string): Promise<unknown> {
    const state = await readNode(connection, `${base}/${nameOfKey(key)}`);
    return state && ownerOf(state);
  }

  readonly #path: string;
  #node: OwnNode | undefined;
  /** The node may have been created: the answer was lost. */
  #isUncertain = false;
  readonly #watch = new NodeWatch();

  constructor(
    readonly session: ZooKeeperSession,
    private readonly settings: QueueEntrySettings,
  ) {
    this.#path = `${settings.base}/${nameOfKey(settings.key)}`;
  }

  async look(wake: (() => void) | undefined): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      if (this.#isUncertain || this.#node) await this.#find(connection);
      const node = this.#node ?? (await this.#create(connection));
      if (node) return { node };
      const position = await watchPredecessor(connection, this.#path, { watch: this.#watch, wake });
      if (position && !position.holder) await this.#assertMode(connection);
      if (position) return position;
    }
  }

  async release(): Promise<boolean> {
    const { connection } = this.session;
    if (this.#isUncertain || this.#node) await this.#find(connection);
    const released = this.#node !== undefined && (await deleteNode(connection, this.#path));
    this.#node = undefined;
    return released;
  }

  unwatch(): void {
    this.#watch.end();
  }

  /** `undefined`: somebody else has it. */
  async #create(connection: ZooKeeperConnection): Promise<OwnNode | undefined> {
    const { acl, base, metadata, owner } = this.settings;
    this.#isUncertain = true;
    try {
      this.#node = await createNode(connection, this.#path, { acl, data: dataOf(metadata, owner), flags: EPHEMERAL });
      this.#isUncertain = false;
      return this.#node;
    } catch (error) {
      this.#isUncertain = !(error instanceof ServerRefusalError);
      if (isRefusal(error, NODE_EXISTS)) return undefined;
      if (!isRefusal(error, NO_NODE)) throw error;
    }
    await createParents(connection, base, acl, PERSISTENT);
    return this.#create(connection);
  }

  /** Whether the node of the key is this owner's: after a lost answer, and before it is deleted. */
  async #find(connection: ZooKeeperConnection): Promise<void> {
    const state = await readNode(connection, this.#path);
    const isOwn = state?.session.equals(this.session.ticket.id) === true && ownerOf(state) === this.settings.owner;
    this.#node = isOwn ? { path: this.#path, czxid: state.czxid } : undefined;
    this.#isUncertain = false;
  }

  /** A node without a session would be in the way for ever. */
  async #assertMode(connection: ZooKeeperConnection): Promise<void> {
    const state = await readNode(connection, this.#path);
    if (state?.session.equals(NO_SESSION) === true) throw mixedModes(this.settings.key, 'sequential');
  }
}
