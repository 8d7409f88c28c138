import {
  canAwaitGrant,
  claimOfOwner,
  isHolderByIndex,
  isExclusive,
  type KeyWaiter,
  type LeaseState,
  MAX_PERMITS,
  MAX_WAITERS,
  type Obstacle,
  obstacleOf,
} from '../../core/index.js';
import {
  parseClaimOfName,
  contenderPrefix,
  encodeData,
  readHolder,
  encodeKey,
  parseOwnerOfName,
} from './znode-name.js';
import {
  listChildren,
  createWithParents,
  deleteZnode,
  getZnodeName,
  type OwnZnode,
  readZnode,
  writeZnode,
} from './znodes.js';
import { QueueEntry, type QueuePosition, type Wake } from './queue-entry.js';
import { sortBySequence, areSequencesExhausted } from './queue-order.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import { isRefusal, NO_CHILDREN_FOR_EPHEMERALS, NO_NODE } from './error.js';
import { CONTAINER, EPHEMERAL_SEQUENTIAL } from './transport/wire.js';

/**
 * Ephemeral sequential znode among those of the other contenders. The lowest sequence numbers hold the key: as many as
 * fit, which is one for a mutex. Each other contender waits for one event that may let it in.
 * https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks
 */
export class SequentialEntry extends QueueEntry {
  static async isHeldBy(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    return (await findHolderZnode(connection, `${base}/${encodeKey(key)}`, owner)) !== undefined;
  }

  static async isHeld(connection: ZooKeeperConnection, base: string, key: string): Promise<boolean> {
    return sortBySequence(await listChildren(connection, `${base}/${encodeKey(key)}`)).length > 0;
  }

  static async readState(connection: ZooKeeperConnection, base: string, key: string): Promise<LeaseState> {
    const parent = `${base}/${encodeKey(key)}`;
    const contenders = await sortContenders(connection, parent, await listChildren(connection, parent));
    const isHolderAtIndex = isHolderByIndex(contenders.map(parseClaimOfName));
    const waiting = contenders.filter((_, index) => !isHolderAtIndex[index]).slice(0, MAX_WAITERS);
    const [holderReadings, waiterReadings] = await Promise.all([
      describeContenders(
        connection,
        parent,
        contenders.filter((_, index) => isHolderAtIndex[index]),
      ),
      describeContenders(connection, parent, waiting),
    ]);
    const holders = holderReadings.map(({ contender, fencingToken }) => ({ ...contender, fencingToken }));
    const [holder] = holders;
    return {
      ...(holder ? { holder } : {}),
      ...(holders.length > 1 ? { holders } : {}),
      waiters: waiterReadings.map(({ contender }) => contender),
    };
  }

  /**
   * Deletes the znode by which the owner holds the key. It cannot hit a later znode, because a name is never used
   * again. Returns whether the owner held the key.
   */
  static async evict(connection: ZooKeeperConnection, base: string, key: string, owner: string): Promise<boolean> {
    const parent = `${base}/${encodeKey(key)}`;
    const znode = await findHolderZnode(connection, parent, owner);
    return znode !== undefined && deleteZnode(connection, `${parent}/${znode}`);
  }

  readonly #parent = `${this.settings.base}/${encodeKey(this.settings.key)}`;
  readonly #prefix = contenderPrefix(this.settings.metadata, this.settings.owner);
  readonly #claim = claimOfOwner(this.settings.owner);
  readonly #isPermitClaim = this.#claim.limit <= MAX_PERMITS;
  /**
   * Whether this owner has told the contenders behind it that it was granted the key. Behind a claim to permits, some
   * can come in only after that. Behind other claims nobody waits for it, so that it is always true for them.
   */
  #hasNotified = !this.#isPermitClaim;

  async ensurePosition(wake: Wake): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      const contenders = await sortContenders(
        connection,
        this.#parent,
        await this.#enterAndListContenders(connection, wake),
      );
      const { znode, index, obstacle } = this.#positionIn(contenders);
      // An operator has deleted the znode, so the owner goes to the end of the queue.
      if (!znode) this.znode = undefined;
      else if (!obstacle) {
        this.#notifyWaiters(connection, znode, contenders.slice(index + 1));
        return { znode };
      } else {
        const position = await this.#watchObstacle(connection, contenders, obstacle, wake);
        if (position) return position;
      }
    }
  }

  #positionIn(contenders: readonly string[]) {
    const index = this.znode ? contenders.indexOf(getZnodeName(this.znode.path)) : -1;
    if (!this.znode || index === -1) return {};
    return { znode: this.znode, index, obstacle: this.#findObstacle(contenders.slice(0, index)) };
  }

  /**
   * Returns the event to wait for; `undefined` if the key is granted. A mutex waits for its predecessor, whatever
   * stands before that.
   */
  #findObstacle(older: readonly string[]): Obstacle | undefined {
    if (!isExclusive(this.settings.owner)) return obstacleOf(this.#claim, older.map(parseClaimOfName));
    return older.length > 0 ? { until: 'end', at: older.length - 1 } : undefined;
  }

  /** Watches the obstacle, and returns the position; `null` if the queue has changed meanwhile. */
  async #watchObstacle(
    connection: ZooKeeperConnection,
    contenders: readonly string[],
    { until: event, at: index }: Obstacle,
    wake: Wake,
  ): Promise<(QueuePosition & { znode: null }) | null> {
    const [firstName = '', watchedName] = [contenders[0], index === undefined ? undefined : contenders[index]];
    const holderPath = `${this.#parent}/${firstName}`;
    if (watchedName === undefined || !wake) return this.readPositionBehind(connection, holderPath, undefined);
    const watched = this.readPositionBehind(connection, `${this.#parent}/${watchedName}`, wake, holderPath);
    if (event === 'end') return watched;
    // The contender may have notified of its grant before it was watched.
    const [position, names] = await Promise.all([watched, listChildren(connection, this.#parent)]);
    const newOrder = await sortContenders(connection, this.#parent, names);
    const { obstacle } = this.#positionIn(newOrder);
    return obstacle?.until === 'grant' && newOrder[obstacle.at] === watchedName ? position : null;
  }

  /**
   * Tells the contenders behind this owner that it was granted the key, by writing its znode, which they watch. If the
   * write fails, they find out when they poll.
   */
  #notifyWaiters(connection: ZooKeeperConnection, znode: OwnZnode, younger: readonly string[]): void {
    if (this.#hasNotified || !younger.some((name) => canAwaitGrant(parseClaimOfName(name), this.#claim))) return;
    this.#hasNotified = true;
    writeZnode(connection, znode, encodeData(this.settings.metadata)).catch(() => (this.#hasNotified = false));
  }

  /** Lists all contenders, this owner among them. */
  async #enterAndListContenders(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    if (this.isCreationInDoubt) await this.findOwnZnode(connection);
    return this.znode ? this.#listChildren(connection, wake) : this.#enterQueue(connection, wake);
  }

  /**
   * Lists the children of the key. For permits the children are watched, because the end of any contender may matter.
   */
  #listChildren(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    if (!wake || !this.#isPermitClaim) return listChildren(connection, this.#parent);
    return this.watch.listAndWatch(connection, this.#parent, wake);
  }

  /**
   * Creates the znode, and lists the children in the same round trip. The server answers in order, so that the list has
   * every predecessor.
   */
  async #enterQueue(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    const { acl, metadata } = this.settings;
    const newZnode = { acl, data: encodeData(metadata), flags: EPHEMERAL_SEQUENTIAL };
    const creation = this.createOwnZnode(connection, `${this.#parent}/${this.#prefix}`, newZnode);
    const listing = this.#listChildren(connection, wake);
    listing.catch(() => undefined);
    try {
      await creation;
    } catch (error) {
      if (isRefusal(error, NO_CHILDREN_FOR_EPHEMERALS)) throw this.mixedModesError('simple');
      if (!isRefusal(error, NO_NODE)) throw error;
      // The server has deleted the empty parent, or this key is new.
      await createWithParents(connection, this.#parent, acl, CONTAINER);
      return this.#enterQueue(connection, wake);
    }
    return listing;
  }

  /**
   * Finds the owner's znode by the start of its name. If there is none, the creation was lost for good: the server
   * handles the requests of a session in order. A znode that another session has left is deleted, because no owner uses
   * it.
   */
  protected async findOwnZnode(connection: ZooKeeperConnection): Promise<void> {
    const names = await listChildren(connection, this.#parent);
    for (const name of names.filter((childName) => childName.startsWith(this.#prefix))) {
      const path = `${this.#parent}/${name}`;
      const state = await readZnode(connection, path);
      if (state?.session.equals(this.session.identity.id) === true) this.znode = { path, czxid: state.czxid };
      else if (state) await deleteZnode(connection, path);
    }
    this.isCreationInDoubt = false;
  }
}

/** Returns the znode by which `owner` holds the key. */
async function findHolderZnode(
  connection: ZooKeeperConnection,
  parent: string,
  owner: string,
): Promise<string | undefined> {
  const contenders = await sortContenders(connection, parent, await listChildren(connection, parent));
  const isHolderAtIndex = isHolderByIndex(contenders.map(parseClaimOfName));
  return contenders.find((name, index) => isHolderAtIndex[index] && parseOwnerOfName(name) === owner);
}

async function describeContenders(connection: ZooKeeperConnection, parent: string, names: readonly string[]) {
  const readings = names.map(async (name) => {
    const state = await readZnode(connection, `${parent}/${name}`);
    const contender: KeyWaiter = { owner: parseOwnerOfName(name) ?? '', ...(state && readHolder(state)) };
    return state ? [{ contender, fencingToken: state.czxid }] : [];
  });
  return (await Promise.all(readings)).flat();
}

/**
 * Returns the contenders in the order of their arrival: by sequence numbers, or by transactions where those are
 * exhausted.
 */
async function sortContenders(
  connection: ZooKeeperConnection,
  parent: string,
  names: readonly string[],
): Promise<readonly string[]> {
  if (!areSequencesExhausted(names)) return sortBySequence(names);
  const states = await Promise.all(
    sortBySequence(names).map(async (name) => ({ name, state: await readZnode(connection, `${parent}/${name}`) })),
  );
  const contenders = states.flatMap(({ name, state }) => (state ? [{ name, czxid: state.czxid }] : []));
  return contenders.toSorted((a, b) => (a.czxid < b.czxid ? -1 : 1)).map(({ name }) => name);
}
