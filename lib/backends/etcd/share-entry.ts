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

export class ShareEntry extends QueueEntry {
  #hasNotifiedWaiters = false;

  protected enterQueue(wake: Wake): Promise<LeaseAttempt> {
    return this.#enterQueue(wake, wake !== undefined);
  }

  protected async checkPosition(createdAt: bigint, wake: Wake): Promise<LeaseAttempt> {
    const { client, names } = this.context;
    const { results, revision, ranges } = await client.transact({
      steps: [{ get: this.#oldestKey }, { list: this.#queueRange }, { get: names.tokenOriginName }],
    });
    const [firstEntry, , tokenOrigin] = results;
    const [, entries = []] = ranges();
    const index = entries.findIndex((entry) => entry.key === this.name && entry.createdAt === createdAt);
    if (!firstEntry || index < 0) {
      this.createdAt = undefined;
      return this.enterQueue(wake);
    }
    const olderEntries = entries.slice(0, index);
    const obstacle = this.#findObstacle(olderEntries);
    if (obstacle) return this.#refuseBehind(firstEntry, olderEntries, obstacle, revision, wake);
    this.#notifyWaiters(createdAt, entries.slice(index + 1));
    return this.grant(createdAt, tokenOrigin);
  }

  /**
   * For a caller that does not wait, reads a queue that is not empty before creating an entry. An entry that does not
   * fit would obstruct others.
   */
  async #enterQueue(wake: Wake, mayQueue: boolean): Promise<LeaseAttempt> {
    const { names } = this.context;
    const { lease, sessionKeyRevision } = this.session;
    const sessionName = names.sessionName(lease);
    const emptyQueue: Condition = { ...names.queueRange(this.key), createdAt: 0n };
    const readSteps = [{ get: this.#oldestKey }, { list: this.#queueRange }] as const;
    const { results, revision, succeeded, ranges } = await this.transactCreation({
      when: [
        { key: this.name, createdAt: 0n },
        { key: sessionName, modifiedAt: sessionKeyRevision },
        ...(mayQueue ? [] : [emptyQueue]),
      ],
      steps: [...readSteps, { put: this.name, value: this.value, lease }, { get: names.tokenOriginName }],
      otherwise: [...readSteps, { get: this.name }, { get: sessionName }],
    });
    const [firstEntry] = results;
    const [, olderEntries = []] = ranges();
    const obstacle = this.#findObstacle(olderEntries);
    if (succeeded) {
      const [, , , tokenOrigin] = results;
      this.createdAt = revision;
      if (firstEntry && obstacle) return this.#refuseBehind(firstEntry, olderEntries, obstacle, revision, wake);
      return this.grant(revision, tokenOrigin);
    }
    const [, , ownEntry, sessionKey] = results;
    if (ownEntry) {
      this.createdAt = ownEntry.createdAt;
      return this.checkPosition(ownEntry.createdAt, wake);
    }
    if (firstEntry && obstacle && !mayQueue) return refusalOf(firstEntry);
    this.session.sessionKeyRevision = sessionKey?.modifiedAt ?? 0n;
    return this.#enterQueue(wake, true);
  }

  get #oldestKey(): OldestOrYoungestKey {
    return { ...this.context.names.queueRange(this.key), which: 'oldest' };
  }

  get #queueRange(): KeyRange {
    return { ...this.context.names.queueRange(this.key), by: 'names by age' };
  }

  #findObstacle(olderEntries: readonly KeyValue[]): Obstacle | undefined {
    return obstacleOf(claimOfOwner(this.name), olderEntries.map(claimOfEntry));
  }

  #refuseBehind(
    firstEntry: KeyValue,
    olderEntries: readonly KeyValue[],
    { at: index }: Obstacle,
    revision: bigint,
    wake: Wake,
  ): LeaseAttempt {
    const entry = index === undefined ? undefined : olderEntries[index];
    const keys = entry ? { key: entry.key } : this.context.names.queueRange(this.key);
    return this.refuse(firstEntry, { keys, createdAt: entry?.createdAt ?? 0n }, revision, wake);
  }

  /** Wakes waiters by writing the entry again. If that fails, the waiters poll. */
  #notifyWaiters(createdAt: bigint, youngerEntries: readonly KeyValue[]): void {
    const claim = claimOfOwner(this.name);
    if (this.#hasNotifiedWaiters || !youngerEntries.some((entry) => canAwaitGrant(claimOfEntry(entry), claim))) return;
    this.#hasNotifiedWaiters = true;
    const { name: key, value, session } = this;
    const rewriteTransaction = { when: [{ key, createdAt }], steps: [{ put: key, value, lease: session.lease }] };
    this.context.client.transact(rewriteTransaction).catch(() => (this.#hasNotifiedWaiters = false));
  }
}
