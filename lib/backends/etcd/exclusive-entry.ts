import type { LeaseAttempt } from '../../core/index.js';
import { QueueEntry, createRefusal, type EntryAttempt, type Wake } from './queue-entry.js';
import type { Condition, KeyValue, OldestOrYoungestQuery } from './transport/messages.js';

/** Entry of an exclusive owner. It holds the lock if it is the oldest, and otherwise watches the entry before it. */
export class ExclusiveEntry extends QueueEntry {
  /**
   * Creates the entry. For a caller that does not wait, creates it only in an empty queue, because an entry that waits
   * would obstruct others.
   */
  protected async enterQueue(attempt: EntryAttempt): Promise<LeaseAttempt> {
    const { wake, onSend } = attempt;
    const { names } = this.context;
    const { lease, sessionKeyRevision } = this.session;
    const [queue, sessionKeyName] = [names.queueRange(this.key), names.sessionKeyName(lease)];
    const oldestQuery: OldestOrYoungestQuery = { ...queue, which: 'oldest' };
    const emptyQueueCondition: Condition = { ...queue, createRevision: 0n };
    const { firstKeyValues, revision, succeeded } = await this.transactCreation(
      {
        when: [
          { key: this.name, createRevision: 0n },
          { key: sessionKeyName, modRevision: sessionKeyRevision },
          ...(wake ? [] : [emptyQueueCondition]),
        ],
        steps: [
          { get: oldestQuery },
          { get: { ...queue, which: 'youngest' } },
          { put: this.name, value: this.value, lease },
          { get: names.tokenOriginName },
        ],
        otherwise: [{ get: oldestQuery }, { get: this.name }, { get: sessionKeyName }],
      },
      onSend,
    );
    if (succeeded) {
      const [oldestEntry, predecessor, , tokenOrigin] = firstKeyValues;
      this.createRevision = revision;
      if (oldestEntry && predecessor) return this.#refuseBehind(oldestEntry, predecessor, revision, wake);
      return this.grant(revision, tokenOrigin);
    }
    const [firstEntry, ownEntry, sessionKey] = firstKeyValues;
    if (ownEntry) {
      this.createRevision = ownEntry.createRevision;
      return this.checkPosition(ownEntry.createRevision, attempt);
    }
    if (firstEntry && !wake) return createRefusal(firstEntry);
    // The session's own key has another revision than required.
    this.session.sessionKeyRevision = sessionKey?.modRevision ?? 0n;
    return this.enterQueue(attempt);
  }

  protected async checkPosition(createRevision: bigint, attempt: EntryAttempt): Promise<LeaseAttempt> {
    const { wake, onSend } = attempt;
    const { client, names } = this.context;
    const queue = names.queueRange(this.key);
    const { firstKeyValues, revision } = await client.transact(
      {
        steps: [
          { get: this.name },
          { get: { ...queue, which: 'oldest' } },
          { get: { ...queue, which: 'youngest', maxCreateRevision: createRevision - 1n } },
          { get: names.tokenOriginName },
        ],
      },
      onSend,
    );
    const [ownEntry, firstEntry, predecessor, tokenOrigin] = firstKeyValues;
    if (ownEntry?.createRevision !== createRevision) {
      this.createRevision = undefined;
      return this.enterQueue(attempt);
    }
    if (firstEntry && predecessor) return this.#refuseBehind(firstEntry, predecessor, revision, wake);
    return this.grant(createRevision, tokenOrigin);
  }

  #refuseBehind(firstEntry: KeyValue, { key, createRevision }: KeyValue, revision: bigint, wake: Wake): LeaseAttempt {
    return this.refuseAndWatch(firstEntry, { keys: { key }, createRevision }, revision, wake);
  }
}
