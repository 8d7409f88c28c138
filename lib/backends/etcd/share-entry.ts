import { awaitsEntry, type Claim, claimOf, type LeaseAttempt, type Obstacle, obstacleOf } from '../../core/index.js';
import { QueueEntry, refused, type Wake } from './queue-entry.js';
import type { Condition, KeyValue, OneOf, Range } from './transport/messages.js';

const claimIn = ({ key }: KeyValue): Claim => claimOf(key);

/** Wants a part of a lock: it has it when it fits behind all who are older. Their names say how much they want. */
export class ShareEntry extends QueueEntry {
  /** Those behind, who may wait for this owner's entry, are told. */
  #hasTold = false;

  protected enter(wake: Wake): Promise<LeaseAttempt> {
    return this.#enter(wake, wake !== undefined);
  }

  protected async look(createdAt: bigint, wake: Wake): Promise<LeaseAttempt> {
    const { client, names } = this.settings;
    const { found, revision, ranges } = await client.transact({
      steps: [{ get: this.#oldest }, { list: this.#line }, { get: names.countedFrom }],
    });
    const [first, , countedFrom] = found;
    const [, line = []] = ranges();
    const at = line.findIndex((entry) => entry.key === this.name && entry.createdAt === createdAt);
    if (!first || at < 0) {
      this.createdAt = undefined;
      return this.enter(wake);
    }
    const before = line.slice(0, at);
    const obstacle = this.#obstacle(before);
    if (obstacle) return this.#wait(first, before, obstacle, revision, wake);
    this.#tell(createdAt, line.slice(at + 1));
    return this.granted(createdAt, countedFrom);
  }

  /**
   * One request where it may stand behind others, or the lock is free. Otherwise it looks first, because a caller that
   * does not wait is in the way of others.
   */
  async #enter(wake: Wake, mayStand: boolean): Promise<LeaseAttempt> {
    const { names } = this.settings;
    const { lease, epoch } = this.session;
    const ofSession = names.session(lease);
    const alone: Condition = { ...names.queue(this.key), createdAt: 0n };
    const reading = [{ get: this.#oldest }, { list: this.#line }] as const;
    const { found, revision, succeeded, ranges } = await this.create({
      when: [{ key: this.name, createdAt: 0n }, { key: ofSession, modifiedAt: epoch }, ...(mayStand ? [] : [alone])],
      steps: [...reading, { put: this.name, value: this.value, lease }, { get: names.countedFrom }],
      otherwise: [...reading, { get: this.name }, { get: ofSession }],
    });
    const [first, , own, last] = found;
    const [, line = []] = ranges();
    const obstacle = this.#obstacle(line);
    if (succeeded) {
      this.createdAt = revision;
      return first && obstacle ? this.#wait(first, line, obstacle, revision, wake) : this.granted(revision, last);
    }
    if (own) {
      this.createdAt = own.createdAt;
      return this.look(own.createdAt, wake);
    }
    if (first && obstacle && !mayStand) return refused(first);
    this.session.epoch = last?.modifiedAt ?? 0n;
    return this.#enter(wake, true);
  }

  get #oldest(): OneOf {
    return { ...this.settings.names.queue(this.key), which: 'oldest' };
  }

  get #line(): Range {
    return { ...this.settings.names.queue(this.key), by: 'names by age' };
  }

  #obstacle(before: readonly KeyValue[]): Obstacle | undefined {
    return obstacleOf(claimOf(this.name), before.map(claimIn));
  }

  #wait(first: KeyValue, before: readonly KeyValue[], { at }: Obstacle, revision: bigint, wake: Wake): LeaseAttempt {
    const other = at === undefined ? undefined : before[at];
    const watched = other ? { key: other.key } : this.settings.names.queue(this.key);
    return this.wait(first, { watched, of: other?.createdAt ?? 0n }, revision, wake);
  }

  /** Writes the entry again, unless it has gone. Where that fails, those behind look again now and then. */
  #tell(createdAt: bigint, behind: readonly KeyValue[]): void {
    const claim = claimOf(this.name);
    if (this.#hasTold || !behind.some((entry) => awaitsEntry(claimIn(entry), claim))) return;
    this.#hasTold = true;
    const { name: key, value, session } = this;
    const word = { when: [{ key, createdAt }], steps: [{ put: key, value, lease: session.lease }] };
    this.settings.client.transact(word).catch(() => (this.#hasTold = false));
  }
}
