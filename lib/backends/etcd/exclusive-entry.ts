import type { LeaseAttempt } from '../../core/index.js';
import { QueueEntry, refused, type Wake } from './queue-entry.js';
import type { Condition, KeyValue, OneOf } from './transport/messages.js';

/** Wants all of a lock, and so waits for the end of its predecessor. A release wakes one. */
export class ExclusiveEntry extends QueueEntry {
  /** One request, also for a lock that is free. A caller that does not wait never stands behind others. */
  protected async enter(wake: Wake): Promise<LeaseAttempt> {
    const { names } = this.settings;
    const { lease, epoch } = this.session;
    const [queue, ofSession] = [names.queue(this.key), names.session(lease)];
    const oldest: OneOf = { ...queue, which: 'oldest' };
    const alone: Condition = { ...queue, createdAt: 0n };
    const { found, revision, succeeded } = await this.create({
      when: [{ key: this.name, createdAt: 0n }, { key: ofSession, modifiedAt: epoch }, ...(wake ? [] : [alone])],
      steps: [
        { get: oldest },
        { get: { ...queue, which: 'youngest' } },
        { put: this.name, value: this.value, lease },
        { get: names.countedFrom },
      ],
      otherwise: [{ get: oldest }, { get: this.name }, { get: ofSession }],
    });
    const [first, other, mark, countedFrom] = found;
    if (succeeded) {
      this.createdAt = revision;
      return first && other ? this.#wait(first, other, revision, wake) : this.granted(revision, countedFrom);
    }
    if (other) {
      this.createdAt = other.createdAt;
      return this.look(other.createdAt, wake);
    }
    if (first && !wake) return refused(first);
    this.session.epoch = mark?.modifiedAt ?? 0n;
    return this.enter(wake);
  }

  protected async look(createdAt: bigint, wake: Wake): Promise<LeaseAttempt> {
    const { client, names } = this.settings;
    const queue = names.queue(this.key);
    const { found, revision } = await client.transact({
      steps: [
        { get: this.name },
        { get: { ...queue, which: 'oldest' } },
        { get: { ...queue, which: 'youngest', createdUpTo: createdAt - 1n } },
        { get: names.countedFrom },
      ],
    });
    const [own, first, before, countedFrom] = found;
    if (own?.createdAt !== createdAt) {
      this.createdAt = undefined;
      return this.enter(wake);
    }
    return first && before ? this.#wait(first, before, revision, wake) : this.granted(createdAt, countedFrom);
  }

  #wait(first: KeyValue, { createdAt, key }: KeyValue, revision: bigint, wake: Wake): LeaseAttempt {
    return this.wait(first, { watched: { key }, of: createdAt }, revision, wake);
  }
}
