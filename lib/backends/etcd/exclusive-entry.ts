import type { LeaseAttempt } from '../../core/index.js';
import { QueueEntry, refusalOf, type Wake } from './queue-entry.js';
import type { Condition, KeyValue, OldestOrYoungestKey } from './transport/messages.js';

export class ExclusiveEntry extends QueueEntry {
  /** Creates no entry behind others for a caller that does not wait: such an entry would obstruct later ones. */
  protected async enterQueue(wake: Wake): Promise<LeaseAttempt> {
    const { names } = this.context;
    const { lease, sessionKeyRevision } = this.session;
    const [queue, sessionName] = [names.queueRange(this.key), names.sessionName(lease)];
    const oldest: OldestOrYoungestKey = { ...queue, which: 'oldest' };
    const emptyQueue: Condition = { ...queue, createdAt: 0n };
    const { results, revision, succeeded } = await this.transactCreation({
      when: [
        { key: this.name, createdAt: 0n },
        { key: sessionName, modifiedAt: sessionKeyRevision },
        ...(wake ? [] : [emptyQueue]),
      ],
      steps: [
        { get: oldest },
        { get: { ...queue, which: 'youngest' } },
        { put: this.name, value: this.value, lease },
        { get: names.tokenOriginName },
      ],
      otherwise: [{ get: oldest }, { get: this.name }, { get: sessionName }],
    });
    if (succeeded) {
      const [oldestEntry, predecessor, , tokenOrigin] = results;
      this.createdAt = revision;
      if (oldestEntry && predecessor) return this.#refuseBehind(oldestEntry, predecessor, revision, wake);
      return this.grant(revision, tokenOrigin);
    }
    const [firstEntry, ownEntry, sessionKey] = results;
    if (ownEntry) {
      this.createdAt = ownEntry.createdAt;
      return this.checkPosition(ownEntry.createdAt, wake);
    }
    if (firstEntry && !wake) return refusalOf(firstEntry);
    this.session.sessionKeyRevision = sessionKey?.modifiedAt ?? 0n;
    return this.enterQueue(wake);
  }

  protected async checkPosition(createdAt: bigint, wake: Wake): Promise<LeaseAttempt> {
    const { client, names } = this.context;
    const queue = names.queueRange(this.key);
    const { results, revision } = await client.transact({
      steps: [
        { get: this.name },
        { get: { ...queue, which: 'oldest' } },
        { get: { ...queue, which: 'youngest', createdUpTo: createdAt - 1n } },
        { get: names.tokenOriginName },
      ],
    });
    const [ownEntry, firstEntry, predecessor, tokenOrigin] = results;
    if (ownEntry?.createdAt !== createdAt) {
      this.createdAt = undefined;
      return this.enterQueue(wake);
    }
    if (firstEntry && predecessor) return this.#refuseBehind(firstEntry, predecessor, revision, wake);
    return this.grant(createdAt, tokenOrigin);
  }

  #refuseBehind(firstEntry: KeyValue, { key, createdAt }: KeyValue, revision: bigint, wake: Wake): LeaseAttempt {
    return this.refuse(firstEntry, { keys: { key }, createdAt }, revision, wake);
  }
}
