import {
  canAwaitGrant,
  parseClaim,
  isHolderByIndex,
  isExclusive,
  type KeyWaiter,
  type LeaseState,
  MAX_PERMITS,
  MAX_WAITERS,
  type Obstacle,
  findObstacle,
} from '../../core/index.js';
import {
  parseClaimOfName,
  createNamePrefix,
  encodeData,
  readHolder,
  encodeNamePart,
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
 * Ephemeral sequential znode. The contenders with the lowest sequence numbers hold the key, as many as fit. Each other
 * contender waits for one event after which its claim may fit.
 * https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks
 */
export class SequentialEntry extends QueueEntry {
  static async isHeldBy(
    connection: ZooKeeperConnection,
    basePath: string,
    key: string,
    owner: string,
  ): Promise<boolean> {
    return (await findHolderZnodeName(connection, `${basePath}/${encodeNamePart(key)}`, owner)) !== undefined;
  }

  static async isHeld(connection: ZooKeeperConnection, basePath: string, key: string): Promise<boolean> {
    return sortBySequence(await listChildren(connection, `${basePath}/${encodeNamePart(key)}`)).length > 0;
  }

  static async readLeaseState(connection: ZooKeeperConnection, basePath: string, key: string): Promise<LeaseState> {
    const parent = `${basePath}/${encodeNamePart(key)}`;
    const contenders = await sortContenders(connection, parent, await listChildren(connection, parent));
    const holderFlags = isHolderByIndex(contenders.map(parseClaimOfName));
    const waitingContenders = contenders.filter((_, index) => !holderFlags[index]).slice(0, MAX_WAITERS);
    const [holderReadings, waiterReadings] = await Promise.all([
      describeContenders(
        connection,
        parent,
        contenders.filter((_, index) => holderFlags[index]),
      ),
      describeContenders(connection, parent, waitingContenders),
    ]);
    const holders = holderReadings.map(({ contender, fencingToken }) => ({ ...contender, fencingToken }));
    const [holder] = holders;
    return {
      ...(holder ? { holder } : {}),
      ...(holders.length > 1 ? { holders } : {}),
      waiters: waiterReadings.map(({ contender }) => contender),
    };
  }

  /** Cannot delete the znode of a later holder, because no name is used twice. */
  static async evict(connection: ZooKeeperConnection, basePath: string, key: string, owner: string): Promise<boolean> {
    const parent = `${basePath}/${encodeNamePart(key)}`;
    const znode = await findHolderZnodeName(connection, parent, owner);
    return znode !== undefined && deleteZnode(connection, `${parent}/${znode}`);
  }

  readonly #parentPath = `${this.settings.basePath}/${encodeNamePart(this.settings.key)}`;
  readonly #namePrefix = createNamePrefix(this.settings.metadata, this.settings.owner);
  readonly #claim = parseClaim(this.settings.owner);
  readonly #isPermitClaim = this.#claim.limit <= MAX_PERMITS;
  /**
   * Whether waiters need no announcement of the grant any more. Always true if the claim is not to permits, because no
   * waiter awaits the grant of such a claim.
   */
  #hasNotified = !this.#isPermitClaim;

  async ensurePosition(wake: Wake): Promise<QueuePosition> {
    for (;;) {
      const { connection } = this.session;
      const contenders = await sortContenders(
        connection,
        this.#parentPath,
        await this.#enterAndListContenders(connection, wake),
      );
      const { znode, index, obstacle } = this.#findPosition(contenders);
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

  #findPosition(contenders: readonly string[]) {
    const index = this.znode ? contenders.indexOf(getZnodeName(this.znode.path)) : -1;
    if (!this.znode || index === -1) return {};
    return { znode: this.znode, index, obstacle: this.#findOwnObstacle(contenders.slice(0, index)) };
  }

  #findOwnObstacle(olderNames: readonly string[]): Obstacle | undefined {
    if (!isExclusive(this.settings.owner)) return findObstacle(this.#claim, olderNames.map(parseClaimOfName));
    return olderNames.length > 0 ? { until: 'end', at: olderNames.length - 1 } : undefined;
  }

  /** Returns `null` if the queue has changed meanwhile. */
  async #watchObstacle(
    connection: ZooKeeperConnection,
    contenders: readonly string[],
    { until: event, at: index }: Obstacle,
    wake: Wake,
  ): Promise<(QueuePosition & { znode: null }) | null> {
    const [firstName = '', watchedName] = [contenders[0], index === undefined ? undefined : contenders[index]];
    const holderPath = `${this.#parentPath}/${firstName}`;
    if (watchedName === undefined || !wake) return this.readPositionBehind(connection, holderPath, undefined);
    const watchedPosition = this.readPositionBehind(connection, `${this.#parentPath}/${watchedName}`, wake, holderPath);
    if (event === 'end') return watchedPosition;
    // The watched contender may have announced its grant before the watch was set, so that no event comes.
    const [position, names] = await Promise.all([watchedPosition, listChildren(connection, this.#parentPath)]);
    const currentContenders = await sortContenders(connection, this.#parentPath, names);
    const { obstacle } = this.#findPosition(currentContenders);
    return obstacle?.until === 'grant' && currentContenders[obstacle.at] === watchedName ? position : null;
  }

  /** Announces the grant by a write to the owner's znode, which waiters watch. If the write fails, the waiters poll. */
  #notifyWaiters(connection: ZooKeeperConnection, znode: OwnZnode, youngerNames: readonly string[]): void {
    if (this.#hasNotified || !youngerNames.some((name) => canAwaitGrant(parseClaimOfName(name), this.#claim))) return;
    this.#hasNotified = true;
    writeZnode(connection, znode, encodeData(this.settings.metadata)).catch(() => (this.#hasNotified = false));
  }

  async #enterAndListContenders(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    if (this.isCreationInDoubt) await this.findOwnZnode(connection);
    return this.znode ? this.#listAndMaybeWatch(connection, wake) : this.#enterQueue(connection, wake);
  }

  /** Also watches the list for a waiting claim to permits, because the end of any contender may let this claim fit. */
  #listAndMaybeWatch(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    if (!wake || !this.#isPermitClaim) return listChildren(connection, this.#parentPath);
    return this.watch.listAndWatch(connection, this.#parentPath, wake);
  }

  /**
   * Creates the owner's znode, and lists the contenders without waiting for the creation. The server handles the two
   * requests in order, so that the list has every predecessor.
   */
  async #enterQueue(connection: ZooKeeperConnection, wake: Wake): Promise<readonly string[]> {
    const { acl, metadata } = this.settings;
    const newZnode = { acl, data: encodeData(metadata), flags: EPHEMERAL_SEQUENTIAL };
    const creation = this.createOwnZnode(connection, `${this.#parentPath}/${this.#namePrefix}`, newZnode);
    const listing = this.#listAndMaybeWatch(connection, wake);
    listing.catch(() => undefined);
    try {
      await creation;
    } catch (error) {
      if (isRefusal(error, NO_CHILDREN_FOR_EPHEMERALS)) throw this.createMixedModesError('simple');
      if (!isRefusal(error, NO_NODE)) throw error;
      // The server has deleted the empty parent, or this key is new.
      await createWithParents(connection, this.#parentPath, acl, CONTAINER);
      return this.#enterQueue(connection, wake);
    }
    return listing;
  }

  /**
   * Finds the owner's znode. If there is none, the server creates none later, because it handles the requests of a
   * session in order. Deletes a znode of this owner from an earlier session, because nothing uses that znode.
   */
  protected async findOwnZnode(connection: ZooKeeperConnection): Promise<void> {
    const names = await listChildren(connection, this.#parentPath);
    for (const name of names.filter((childName) => childName.startsWith(this.#namePrefix))) {
      const path = `${this.#parentPath}/${name}`;
      const state = await readZnode(connection, path);
      if (state?.sessionId.equals(this.session.identity.id) === true) this.znode = { path, czxid: state.czxid };
      else if (state) await deleteZnode(connection, path);
    }
    this.isCreationInDoubt = false;
  }
}

async function findHolderZnodeName(
  connection: ZooKeeperConnection,
  parent: string,
  owner: string,
): Promise<string | undefined> {
  const contenders = await sortContenders(connection, parent, await listChildren(connection, parent));
  const holderFlags = isHolderByIndex(contenders.map(parseClaimOfName));
  return contenders.find((name, index) => holderFlags[index] && parseOwnerOfName(name) === owner);
}

async function describeContenders(connection: ZooKeeperConnection, parent: string, names: readonly string[]) {
  const readings = names.map(async (name) => {
    const state = await readZnode(connection, `${parent}/${name}`);
    const contender: KeyWaiter = { owner: parseOwnerOfName(name) ?? '', ...(state && readHolder(state)) };
    return state ? [{ contender, fencingToken: state.czxid }] : [];
  });
  return (await Promise.all(readings)).flat();
}

/** Returns the contenders among `names`, the oldest first, also when their sequence numbers are used up. */
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
