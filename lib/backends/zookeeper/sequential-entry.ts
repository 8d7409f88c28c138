import {
  awaitsEntry,
  claimOf,
  holding,
  isExclusive,
  type KeyWaiter,
  type LeaseState,
  MOST_PERMITS,
  MAX_WAITERS,
  type Obstacle,
  obstacleOf,
} from '../../core/index.js';
import { claimInName, contenderPrefix, dataOf, holderOf, nameOfKey, ownerInName } from './node-name.js';
import { childrenOf, createParents, deleteNode, nameOf, type OwnNode, readNode, writeNode } from './nodes.js';
import { QueueEntry, type QueuePosition, type Wake } from './queue-entry.js';
import { inOrder, numbersAreUsedUp } from './queue-order.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import { isRefusal, NO_CHILDREN_FOR_EPHEMERALS, NO_NODE } from './error.js';
import { CONTAINER, EPHEMERAL_SEQUENTIAL } from './transport/wire.js';

/**
 * An ephemeral node that the server numbers, among those of the other contenders. The lowest numbers have the key: as
 * many as fit, which is one for a mutex. Each of the others waits for one event that may let it in.
 * https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks
 */
export class SequentialEntry extends QueueEntry {
  static async holds(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    return (await nodeOf(connection, `${base}/${nameOfKey(key)}`, owner)) !== undefined;
  }

  static async isHeld(connection: ZooKeeperConnection, base: string, key: string): Promise<boolean> {
    return inOrder(await childrenOf(connection, `${base}/${nameOfKey(key)}`)).length > 0;
  }

  static async look(connection: ZooKeeperConnection, base: string, key: string): Promise<LeaseState> {
    const parent = `${base}/${nameOfKey(key)}`;
    const order = await ordered(connection, parent, await childrenOf(connection, parent));
    const holds = holding(order.map(claimInName));
    const waiting = order.filter((_, index) => !holds[index]).slice(0, MAX_WAITERS);
    const [inside, waiters] = await Promise.all([
      described(
        connection,
        parent,
        order.filter((_, index) => holds[index]),
      ),
      described(connection, parent, waiting),
    ]);
    const holders = inside.map(({ waiter, fencingToken }) => ({ ...waiter, fencingToken }));
    const [holder] = holders;
    return {
      ...(holder ? { holder } : {}),
      ...(holders.length > 1 ? { holders } : {}),
      waiters: waiters.map(({ waiter }) => waiter),
    };
  }

  /** Whether `owner` had the key: no other node ever has its name. */
  static async evict(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    const parent = `${base}/${nameOfKey(key)}`;
    const node = await nodeOf(connection, parent, owner);
    return node !== undefined && deleteNode(connection, `${parent}/${node}`);
  }

  readonly #parent = `${this.settings.base}/${nameOfKey(this.settings.key)}`;
  readonly #prefix = contenderPrefix(this.settings.metadata, this.settings.owner);
  readonly #claim = claimOf(this.settings.owner);
  readonly #hasPermits = this.#claim.of <= MOST_PERMITS;
  /** Nobody waits for this owner's entry, or those who do are told. */
  #hasTold = !this.#hasPermits;

  async look(wake: Wake): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      const order = await ordered(connection, this.#parent, await this.#contenders(connection, wake));
      const { node, index, obstacle } = this.#placeIn(order);
      // An operator has deleted the node: back to the end of the queue.
      if (!node) this.node = undefined;
      else if (!obstacle) {
        this.#tell(connection, node, order.slice(index + 1));
        return { node };
      } else {
        const position = await this.#wait(connection, order, obstacle, wake);
        if (position) return position;
      }
    }
  }

  #placeIn(order: readonly string[]) {
    const index = this.node ? order.indexOf(nameOf(this.node.path)) : -1;
    if (!this.node || index === -1) return {};
    return { node: this.node, index, obstacle: this.#obstacle(order.slice(0, index)) };
  }

  /** A mutex need not know who stands before its predecessor. */
  #obstacle(before: readonly string[]): Obstacle | undefined {
    if (!isExclusive(this.settings.owner)) return obstacleOf(this.#claim, before.map(claimInName));
    return before.length > 0 ? { until: 'end', at: before.length - 1 } : undefined;
  }

  /** `null`: the line has changed meanwhile. */
  async #wait(
    connection: ZooKeeperConnection,
    order: readonly string[],
    { until, at }: Obstacle,
    wake: Wake,
  ): Promise<(QueuePosition & { node: null }) | null> {
    const [first = '', other] = [order[0], at === undefined ? undefined : order[at]];
    const holderPath = `${this.#parent}/${first}`;
    if (other === undefined || !wake) return this.watchPredecessor(connection, holderPath, undefined);
    const watched = this.watchPredecessor(connection, `${this.#parent}/${other}`, wake, holderPath);
    if (until === 'end') return watched;
    // It may have told of its entry before it was watched.
    const [position, names] = await Promise.all([watched, childrenOf(connection, this.#parent)]);
    const line = await ordered(connection, this.#parent, names);
    const { obstacle } = this.#placeIn(line);
    return obstacle?.until === 'entry' && line[obstacle.at] === other ? position : null;
  }

  /** Tells those behind of the entry. Where that fails, they look again now and then. */
  #tell(connection: ZooKeeperConnection, node: OwnNode, behind: readonly string[]): void {
    if (this.#hasTold || !behind.some((name) => awaitsEntry(claimInName(name), this.#claim))) return;
    this.#hasTold = true;
    writeNode(connection, node, dataOf(this.settings.metadata)).catch(() => (this.#hasTold = false));
  }

  /** All who want the key, this owner among them. */
  async #contenders(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    if (this.isUncertain) await this.find(connection);
    return this.node ? this.#list(connection, wake) : this.#enter(connection, wake);
  }

  /** For permits, any departure may matter. */
  #list(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    if (!wake || !this.#hasPermits) return childrenOf(connection, this.#parent);
    return this.watch.list(connection, this.#parent, wake);
  }

  /** Creates the node and lists all, in one go: no predecessor can be missing then. */
  async #enter(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    const { acl, metadata } = this.settings;
    const how = { acl, data: dataOf(metadata), flags: EPHEMERAL_SEQUENTIAL };
    const created = this.create(connection, `${this.#parent}/${this.#prefix}`, how);
    const listed = this.#list(connection, wake);
    listed.catch(() => undefined);
    try {
      await created;
    } catch (error) {
      if (isRefusal(error, NO_CHILDREN_FOR_EPHEMERALS)) throw this.mixedModes('simple');
      if (!isRefusal(error, NO_NODE)) throw error;
      // The server has removed the empty parent, or this key is new.
      await createParents(connection, this.#parent, acl, CONTAINER);
      return this.#enter(connection, wake);
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

/** The node by which `owner` has the key. */
async function nodeOf(connection: ZooKeeperConnection, parent: string, owner: string): Promise<string | undefined> {
  const order = await ordered(connection, parent, await childrenOf(connection, parent));
  const holds = holding(order.map(claimInName));
  return order.find((name, index) => holds[index] && ownerInName(name) === owner);
}

async function described(connection: ZooKeeperConnection, parent: string, names: readonly string[]) {
  const read = names.map(async (name) => {
    const state = await readNode(connection, `${parent}/${name}`);
    const waiter: KeyWaiter = { owner: ownerInName(name) ?? '', ...(state && holderOf(state)) };
    return state ? [{ waiter, fencingToken: state.czxid }] : [];
  });
  return (await Promise.all(read)).flat();
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
