import {
  canAwaitGrant,
  type Claim,
  claimOfOwner,
  type LeaseAttempt,
  type Obstacle,
  obstacleOf,
} from '../../core/index.js';
import { QueueEntry, refusalOf, type Wake } from './queue-entry.js';
import type { Condition, KeyRange, KeyValue, OldestOrYoungestKey } from './transport/messages.js';

const claimOfEntry = ({ key }: KeyValue): Claim => claimOfOwner(key);

/** Entry that claims a part of a lock, and is granted when it fits behind all older entries. Names tell the claims. */
export class ShareEntry extends QueueEntry {
  /** Whether younger entries that may wait for this owner's grant were notified of it. */
  #hasNotified = false;

  protected enterQueue(wake: Wake): Promise<LeaseAttempt> {
    return this.#enterQueue(wake, wake !== undefined);
  }

  protected async checkPosition(createdAt: bigint, wake: Wake): Promise<LeaseAttempt> {
    const { client, names } = this.context;
    const { results, revision, ranges } = await client.transact({
      steps: [{ get: this.#oldest }, { list: this.#allEntries }, { get: names.tokenOriginName }],
    });
    const [first, , tokenOrigin] = results;
    const [, entries = []] = ranges();
    const index = entries.findIndex((entry) => entry.key === this.name && entry.createdAt === createdAt);
    if (!first || index < 0) {
      this.createdAt = undefined;
      return this.enterQueue(wake);
    }
    const older = entries.slice(0, index);
    const obstacle = this.#findObstacle(older);
    if (obstacle) return this.#refuseBehind(first, older, obstacle, revision, wake);
    this.#notifyWaiters(createdAt, entries.slice(index + 1));
    return this.grant(createdAt, tokenOrigin);
  }

  /**
   * Creates the entry if it may wait behind others, or if the queue is empty. Otherwise the transaction only reads, and
   * a second one creates the entry if it fits. The entry of a caller that does not wait must not obstruct others.
   */
  async #enterQueue(wake: Wake, mayQueue: boolean): Promise<LeaseAttempt> {
    const { names } = this.context;
    const { lease, sessionKeyRevision } = this.session;
    const sessionName = names.sessionName(lease);
    const emptyQueue: Condition = { ...names.queueRange(this.key), createdAt: 0n };
    const reading = [{ get: this.#oldest }, { list: this.#allEntries }] as const;
    const { results, revision, succeeded, ranges } = await this.transactCreation({
      when: [
        { key: this.name, createdAt: 0n },
        { key: sessionName, modifiedAt: sessionKeyRevision },
        ...(mayQueue ? [] : [emptyQueue]),
      ],
      steps: [...reading, { put: this.name, value: this.value, lease }, { get: names.tokenOriginName }],
      otherwise: [...reading, { get: this.name }, { get: sessionName }],
    });
    const [first] = results;
    const [, older = []] = ranges();
    const obstacle = this.#findObstacle(older);
    if (succeeded) {
      const [, , , tokenOrigin] = results;
      this.createdAt = revision;
      if (first && obstacle) return this.#refuseBehind(first, older, obstacle, revision, wake);
      return this.grant(revision, tokenOrigin);
    }
    const [, , ownEntry, sessionKey] = results;
    if (ownEntry) {
      this.createdAt = ownEntry.createdAt;
      return this.checkPosition(ownEntry.createdAt, wake);
    }
    if (first && obstacle && !mayQueue) return refusalOf(first);
    this.session.sessionKeyRevision = sessionKey?.modifiedAt ?? 0n;
    return this.#enterQueue(wake, true);
  }

  get #oldest(): OldestOrYoungestKey {
    return { ...this.context.names.queueRange(this.key), which: 'oldest' };
  }

  get #allEntries(): KeyRange {
    return { ...this.context.names.queueRange(this.key), by: 'names by age' };
  }

  #findObstacle(older: readonly KeyValue[]): Obstacle | undefined {
    return obstacleOf(claimOfOwner(this.name), older.map(claimOfEntry));
  }

  #refuseBehind(
    first: KeyValue,
    older: readonly KeyValue[],
    { at: index }: Obstacle,
    revision: bigint,
    wake: Wake,
  ): LeaseAttempt {
    const entry = index === undefined ? undefined : older[index];
    const keys = entry ? { key: entry.key } : this.context.names.queueRange(this.key);
    return this.refuse(first, { keys, createdAt: entry?.createdAt ?? 0n }, revision, wake);
  }

  /** Puts the entry again, unless it was deleted, which wakes the waiters. Where that fails, they poll. */
  #notifyWaiters(createdAt: bigint, younger: readonly KeyValue[]): void {
    const claim = claimOfOwner(this.name);
    if (this.#hasNotified || !younger.some((entry) => canAwaitGrant(claimOfEntry(entry), claim))) return;
    this.#hasNotified = true;
    const { name: key, value, session } = this;
    const putAgain = { when: [{ key, createdAt }], steps: [{ put: key, value, lease: session.lease }] };
    this.context.client.transact(putAgain).catch(() => (this.#hasNotified = false));
  }
}
