import type { LeaseAttempt } from '../../core/index.js';
import { QueueEntry, refusalOf, type Wake } from './queue-entry.js';
import type { Condition, KeyValue, OldestOrYoungestKey } from './transport/messages.js';

/** Entry that claims the whole lock, and so waits for the end of its predecessor. A release wakes one waiter. */
export class ExclusiveEntry extends QueueEntry {
  /** Sends one request, even for a lock that is free. A caller that does not wait never stands behind others. */
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
    const [first, ownEntry, sessionKey] = results;
    if (ownEntry) {
      this.createdAt = ownEntry.createdAt;
      return this.checkPosition(ownEntry.createdAt, wake);
    }
    if (first && !wake) return refusalOf(first);
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
    const [ownEntry, first, predecessor, tokenOrigin] = results;
    if (ownEntry?.createdAt !== createdAt) {
      this.createdAt = undefined;
      return this.enterQueue(wake);
    }
    if (first && predecessor) return this.#refuseBehind(first, predecessor, revision, wake);
    return this.grant(createdAt, tokenOrigin);
  }

  #refuseBehind(first: KeyValue, { key, createdAt }: KeyValue, revision: bigint, wake: Wake): LeaseAttempt {
    return this.refuse(first, { keys: { key }, createdAt }, revision, wake);
  }
}
