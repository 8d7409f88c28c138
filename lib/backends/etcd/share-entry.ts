import {
  canAwaitGrant,
  type Claim,
  parseClaim,
  type LeaseAttempt,
  type Obstacle,
  findObstacle,
} from '../../core/index.js';
import { QueueEntry, createRefusal, type EntryAttempt, type Wake } from './queue-entry.js';
import type { Condition, KeyRange, KeyValue, OldestOrYoungestQuery } from './transport/messages.js';

const claimOfEntry = ({ key }: KeyValue): Claim => parseClaim(key);

/** Entry of an owner that shares the lock. It holds the lock while its claim fits together with all older claims. */
export class ShareEntry extends QueueEntry {
  #hasNotifiedWaiters = false;

  protected enterQueue(attempt: EntryAttempt): Promise<LeaseAttempt> {
    return this.#enterQueue(attempt, attempt.wake !== undefined);
  }

  protected async checkPosition(createRevision: bigint, attempt: EntryAttempt): Promise<LeaseAttempt> {
    const { wake, onSend } = attempt;
    const { client, names } = this.context;
    const { firstKeyValues, revision, readKeyValuesByStep } = await client.transact(
      { steps: [{ get: this.#oldestKeyQuery }, { list: this.#queueRange }, { get: names.tokenOriginName }] },
      onSend,
    );
    const [firstEntry, , tokenOrigin] = firstKeyValues;
    const [, entries = []] = readKeyValuesByStep();
    const index = entries.findIndex((entry) => entry.key === this.name && entry.createRevision === createRevision);
    if (!firstEntry || index < 0) {
      this.createRevision = undefined;
      return this.enterQueue(attempt);
    }
    const olderEntries = entries.slice(0, index);
    const obstacle = this.#findOwnObstacle(olderEntries);
    if (obstacle) return this.#refuseBehind(firstEntry, olderEntries, obstacle, revision, wake);
    this.#notifyWaiters(createRevision, entries.slice(index + 1));
    return this.grant(createRevision, tokenOrigin);
  }

  /**
   * Creates the entry and reads the queue. For a caller that does not wait, first reads a queue that is not empty,
   * because an entry that does not fit would obstruct others.
   */
  async #enterQueue(attempt: EntryAttempt, mayEnterBehindOthers: boolean): Promise<LeaseAttempt> {
    const { wake, onSend } = attempt;
    const { names } = this.context;
    const { lease, sessionKeyRevision } = this.session;
    const sessionKeyName = names.sessionKeyName(lease);
    const emptyQueueCondition: Condition = { ...names.queueRange(this.key), createRevision: 0n };
    const readSteps = [{ get: this.#oldestKeyQuery }, { list: this.#queueRange }] as const;
    const { firstKeyValues, revision, succeeded, readKeyValuesByStep } = await this.transactCreation(
      {
        when: [
          { key: this.name, createRevision: 0n },
          { key: sessionKeyName, modRevision: sessionKeyRevision },
          ...(mayEnterBehindOthers ? [] : [emptyQueueCondition]),
        ],
        steps: [...readSteps, { put: this.name, value: this.value, lease }, { get: names.tokenOriginName }],
        otherwise: [...readSteps, { get: this.name }, { get: sessionKeyName }],
      },
      onSend,
    );
    const [firstEntry] = firstKeyValues;
    const [, olderEntries = []] = readKeyValuesByStep();
    const obstacle = this.#findOwnObstacle(olderEntries);
    if (succeeded) {
      const [, , , tokenOrigin] = firstKeyValues;
      this.createRevision = revision;
      if (firstEntry && obstacle) return this.#refuseBehind(firstEntry, olderEntries, obstacle, revision, wake);
      return this.grant(revision, tokenOrigin);
    }
    const [, , ownEntry, sessionKey] = firstKeyValues;
    if (ownEntry) {
      this.createRevision = ownEntry.createRevision;
      return this.checkPosition(ownEntry.createRevision, attempt);
    }
    if (firstEntry && obstacle && !mayEnterBehindOthers) return createRefusal(firstEntry);
    // The claim fits into a queue that is not empty, or the session's own key has another revision than required.
    this.session.sessionKeyRevision = sessionKey?.modRevision ?? 0n;
    return this.#enterQueue(attempt, true);
  }

  get #oldestKeyQuery(): OldestOrYoungestQuery {
    return { ...this.context.names.queueRange(this.key), which: 'oldest' };
  }

  get #queueRange(): KeyRange {
    return { ...this.context.names.queueRange(this.key), by: 'names by age' };
  }

  #findOwnObstacle(olderEntries: readonly KeyValue[]): Obstacle | undefined {
    return findObstacle(parseClaim(this.name), olderEntries.map(claimOfEntry));
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
    return this.refuseAndWatch(firstEntry, { keys, createRevision: entry?.createRevision ?? 0n }, revision, wake);
  }

  /** Announces the grant by writing the entry again, because waiters watch it. If the write fails, the waiters poll. */
  #notifyWaiters(createRevision: bigint, youngerEntries: readonly KeyValue[]): void {
    const claim = parseClaim(this.name);
    if (this.#hasNotifiedWaiters || !youngerEntries.some((entry) => canAwaitGrant(claimOfEntry(entry), claim))) return;
    this.#hasNotifiedWaiters = true;
    const { name: key, value, session } = this;
    // The condition keeps a late request from undoing a transfer, which also writes the entry.
    const rewriteTransaction = {
      when: [{ key, modRevision: createRevision }],
      steps: [{ put: key, value, lease: session.lease }],
    };
    this.context.client.transact(rewriteTransaction).catch(() => (this.#hasNotifiedWaiters = false));
  }
}
