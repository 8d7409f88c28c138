import { type KeyWaiter, type LeaseState, MOST_WAITERS } from '../../core/index.js';
import { contenderPrefix, dataOf, holderOf, nameOfKey, ownerInName } from './node-name.js';
import { childrenOf, createParents, deleteNode, nameOf, readNode } from './nodes.js';
import { QueueEntry, type QueuePosition, type Wake } from './queue-entry.js';
import { inOrder, numbersAreUsedUp } from './queue-order.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import { isRefusal, NO_CHILDREN_FOR_EPHEMERALS, NO_NODE } from './error.js';
import { CONTAINER, EPHEMERAL_SEQUENTIAL } from './transport/wire.js';

/**
 * An ephemeral node that the server numbers, among those of the other contenders. The lowest number has the key. Each
 * of the others waits for the end of its predecessor.
 * https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks
 */
export class SequentialEntry extends QueueEntry {
  /** The owner that has `key` now. */
  static async ownerOf(connection: ZooKeeperConnection, base: string, key: string): Promise<string | undefined> {
    const first = await firstOf(connection, `${base}/${nameOfKey(key)}`);
    return first === undefined ? undefined : ownerInName(first);
  }

  static async look(connection: ZooKeeperConnection, base: string, key: string): Promise<LeaseState> {
    const parent = `${base}/${nameOfKey(key)}`;
    const order = await ordered(connection, parent, await childrenOf(connection, parent));
    const line = order.slice(0, MOST_WAITERS + 1).map(async (name) => {
      const state = await readNode(connection, `${parent}/${name}`);
      const waiter: KeyWaiter = { owner: ownerInName(name) ?? '', ...(state && holderOf(state)) };
      return state ? [{ waiter, fencingToken: state.czxid }] : [];
    });
    const [first, ...others] = (await Promise.all(line)).flat();
    const waiters = others.map(({ waiter }) => waiter);
    return first ? { holder: { ...first.waiter, fencingToken: first.fencingToken }, waiters } : { waiters };
  }

  /** Whether `owner` had the key: no other node ever has its name. */
  static async evict(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    const parent = `${base}/${nameOfKey(key)}`;
    const first = await firstOf(connection, parent);
    return first !== undefined && ownerInName(first) === owner && deleteNode(connection, `${parent}/${first}`);
  }

  readonly #parent = `${this.settings.base}/${nameOfKey(this.settings.key)}`;
  readonly #prefix = contenderPrefix(this.settings.metadata, this.settings.owner);

  async look(wake: Wake): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      const names = await this.#contenders(connection);
      const { node } = this;
      const order = await ordered(connection, this.#parent, names);
      const index = node ? order.indexOf(nameOf(node.path)) : -1;
      const [first, before] = [order[0], order[index - 1]];
      if (node && index === 0) return { node };
      // An operator has deleted the node: back to the end of the queue.
      if (index === -1) this.node = undefined;
      if (first === undefined || before === undefined) continue;
      const [path, holderPath] = [`${this.#parent}/${before}`, `${this.#parent}/${first}`];
      const position = await this.watchPredecessor(connection, path, wake, holderPath);
      if (position) return position;
    }
  }

  /** All who want the key, this owner among them. */
  async #contenders(connection: ZooKeeperConnection): Promise<readonly string[]> {
    if (this.isUncertain) await this.find(connection);
    return this.node ? childrenOf(connection, this.#parent) : this.#enter(connection);
  }

  /** Creates the node and lists all, in one go: no predecessor can be missing then. */
  async #enter(connection: ZooKeeperConnection): Promise<readonly string[]> {
    const { acl, metadata } = this.settings;
    const how = { acl, data: dataOf(metadata), flags: EPHEMERAL_SEQUENTIAL };
    const created = this.create(connection, `${this.#parent}/${this.#prefix}`, how);
    const listed = childrenOf(connection, this.#parent);
    listed.catch(() => undefined);
    try {
      await created;
    } catch (error) {
      if (isRefusal(error, NO_CHILDREN_FOR_EPHEMERALS)) throw this.mixedModes('simple');
      if (!isRefusal(error, NO_NODE)) throw error;
      // The server has removed the empty parent, or this key is new.
      await createParents(connection, this.#parent, acl, CONTAINER);
      return this.#enter(connection);
    }
    return listed;
  }

  /** The creation was carried out in this session, or never will be. In another session the node belongs to nobody. */
  protected async find(connection: ZooKeeperConnection): Promise<void> {
    const names = await childrenOf(connection, this.#parent);
    for (const name of names.filter((one) => one.startsWith(this.#prefix))) {
      const path = `${this.#parent}/${name}`;
      const state = await readNode(connection, path);
      if (state?.session.equals(this.session.ticket.id) === true) this.node = { path, czxid: state.czxid };
      else if (state) await deleteNode(connection, path);
    }
    this.isUncertain = false;
  }
}

async function firstOf(connection: ZooKeeperConnection, parent: string): Promise<string | undefined> {
  return (await ordered(connection, parent, await childrenOf(connection, parent)))[0];
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
