import { contenderPrefix, dataOf, nameOfKey, ownerInName } from './node-name.js';
import { NodeWatch } from './node-watch.js';
import { childrenOf, createNode, createParents, deleteNode, nameOf, type OwnNode, readNode } from './nodes.js';
import {
  mixedModes,
  type QueueEntry,
  type QueueEntrySettings,
  type QueuePosition,
  watchPredecessor,
} from './queue-entry.js';
import { inOrder, numbersAreUsedUp } from './queue-order.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import { isRefusal, NO_CHILDREN_FOR_EPHEMERALS, NO_NODE, ServerRefusalError } from './error.js';
import type { ZooKeeperSession } from './session.js';
import { CONTAINER, EPHEMERAL_SEQUENTIAL } from './transport/wire.js';

/**
 * An ephemeral node that the server numbers, among those of the other contenders: the lowest number has the key,
 * everybody else waits for the end of the one before.
 * https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks
 */
export class SequentialEntry implements QueueEntry {
  /** The owner that has `key` now. */
  static async ownerOf(connection: ZooKeeperConnection, base: string, key: string): Promise<string | undefined> {
    const parent = `${base}/${nameOfKey(key)}`;
    const [first] = await ordered(connection, parent, await childrenOf(connection, parent));
    return first === undefined ? undefined : ownerInName(first);
  }

  readonly #parent: string;
  readonly #prefix: string;
  #node: OwnNode | undefined;
  /** A node may have been created whose name is not known: the answer was lost. */
  #isUncertain = false;
  /** Watches the predecessor. */
  readonly #watch = new NodeWatch();

  constructor(
    readonly session: ZooKeeperSession,
    private readonly settings: QueueEntrySettings,
  ) {
    this.#parent = `${settings.base}/${nameOfKey(settings.key)}`;
    this.#prefix = contenderPrefix(settings.metadata, settings.owner);
  }

  async look(wake: (() => void) | undefined): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      const names = await this.#contenders(connection);
      const node = this.#node;
      const order = await ordered(connection, this.#parent, names);
      const index = node ? order.indexOf(nameOf(node.path)) : -1;
      const [first, before] = [order[0], order[index - 1]];
      if (node && index === 0) return { node };
      // Somebody has deleted the node: back to the end of the queue.
      if (index === -1) this.#node = undefined;
      if (first === undefined || before === undefined) continue;
      const how = { watch: this.#watch, wake, holderPath: `${this.#parent}/${first}` };
      const position = await watchPredecessor(connection, `${this.#parent}/${before}`, how);
      if (position) return position;
    }
  }

  async release(): Promise<boolean> {
    const { connection } = this.session;
    if (this.#isUncertain) await this.#find(connection);
    const released = this.#node !== undefined && (await deleteNode(connection, this.#node.path));
    this.#node = undefined;
    return released;
  }

  unwatch(): void {
    this.#watch.end();
  }

  /** All who want the key, this owner among them. */
  async #contenders(connection: ZooKeeperConnection): Promise<readonly string[]> {
    if (this.#isUncertain) await this.#find(connection);
    return this.#node ? childrenOf(connection, this.#parent) : this.#enter(connection);
  }

  /** Creates the node and lists all, in one go: nobody who came before can be missing then. */
  async #enter(connection: ZooKeeperConnection): Promise<readonly string[]> {
    const { acl, metadata } = this.settings;
    this.#isUncertain = true;
    const how = { acl, data: dataOf(metadata), flags: EPHEMERAL_SEQUENTIAL };
    const created = createNode(connection, `${this.#parent}/${this.#prefix}`, how);
    const listed = childrenOf(connection, this.#parent);
    listed.catch(() => undefined);
    try {
      this.#node = await created;
      this.#isUncertain = false;
      return await listed;
    } catch (error) {
      if (this.#node) throw error;
      this.#isUncertain = !(error instanceof ServerRefusalError);
      if (isRefusal(error, NO_CHILDREN_FOR_EPHEMERALS)) throw mixedModes(this.settings.key, 'simple');
      if (!isRefusal(error, NO_NODE)) throw error;
    }
    // The server has removed the empty parent, or nobody has asked for this key yet.
    await createParents(connection, this.#parent, acl, CONTAINER);
    return this.#enter(connection);
  }

  /**
   * The answer to the creation was lost: it was carried out, in this session, or it never will be. A node that has the
   * owner's name in another session is nobody's any more.
   */
  async #find(connection: ZooKeeperConnection): Promise<void> {
    const names = await childrenOf(connection, this.#parent);
    for (const name of names.filter((one) => one.startsWith(this.#prefix))) {
      const path = `${this.#parent}/${name}`;
      const state = await readNode(connection, path);
      if (state?.session.equals(this.session.ticket.id) === true) this.#node = { path, czxid: state.czxid };
      else if (state) await deleteNode(connection, path);
    }
    this.#isUncertain = false;
  }
}

/** First come first: by the numbers of the nodes, or by their transactions where the numbers are used up. */
async function ordered(
  connection: ZooKeeperConnection,
  parent: string,
  names: readonly string[],
): Promise<readonly string[]> {
  if (!numbersAreUsedUp(names)) return inOrder(names);
  const states = await Promise.all(
    inOrder(names).map(async (name) => ({ name, state: await readNode(connection, `${parent}/${name}`) })),
  );
  const contenders = states.flatMap(({ name, state }) => (state ? [{ name, czxid: state.czxid }] : []));
  return contenders.toSorted((a, b) => (a.czxid < b.czxid ? -1 : 1)).map(({ name }) => name);
}
