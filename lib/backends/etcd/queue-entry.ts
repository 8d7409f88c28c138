import { AbortListener, type LeaseAttempt, unpackHolder } from '../../core/index.js';
import type { DeletionWatch } from './deletion-watch.js';
import type { EtcdClient } from './transport/client.js';
import { EtcdError, isFull, isRefusal } from './error.js';
import { fencingTokenOf } from './fencing-token.js';
import type { EtcdSession } from './session.js';
import type { EtcdLockNames } from './lock-names.js';
import type { Condition, KeyValue, OneOf, Outcome, Transaction } from './transport/messages.js';
import type { Watch } from './transport/watch-stream.js';

export interface QueueEntrySettings {
  readonly client: EtcdClient;
  readonly names: EtcdLockNames;
  readonly watch: DeletionWatch;
}

/** Called when another look is worth it. A caller without one does not wait. */
type Wake = (() => void) | undefined;

/**
 * One owner's key below that of a lock, under the lease of its process. The oldest has the lock, by etcd's own count.
 * Each of the others watches its predecessor: a release wakes one.
 *
 * A request without an answer may still be carried out at any time, for example by a member that was frozen. A release
 * in doubt therefore writes the session's own key in the transaction that deletes the entry. An entry is created only
 * while that key is unchanged. A late creation then has no effect. A late deletion would: the name is not reused.
 */
export class QueueEntry {
  readonly #name: string;
  /** etcd's revision at the creation: the number in the queue. Unknown before the answer. */
  #createdAt: bigint | undefined;
  #inDoubt = false;
  #hasLock = false;
  /** The watch of the predecessor. */
  #watched: { readonly createdAt: bigint; readonly watch: Watch; readonly sessionEnd: AbortListener } | undefined;

  constructor(
    private readonly settings: QueueEntrySettings,
    readonly session: EtcdSession,
    private readonly key: string,
    private readonly value: string,
  ) {
    this.#name = session.takeName(key);
  }

  /** Takes the lock if it is free. Otherwise stands in line, if there is a `wake` to call. */
  ask(wake: Wake): Promise<LeaseAttempt> {
    return this.#createdAt === undefined ? this.#enter(wake) : this.#look(this.#createdAt, wake);
  }

  /** Whether the owner has the lock, for a whole TTL from this call on. */
  async isHeld(): Promise<boolean> {
    return this.#createdAt !== undefined && this.session.isThere(this.#name, this.#createdAt);
  }

  /** Releases the lock, or leaves the queue. Whether the owner had the lock. */
  async release(): Promise<boolean> {
    this.unwatch();
    if (this.session.gone.aborted) return false;
    const released = await (this.#inDoubt ? this.#releaseInDoubt() : this.#releaseForSure());
    return released && this.#hasLock;
  }

  unwatch(): void {
    this.#watched?.watch.end();
    this.#watched?.sessionEnd.end();
    this.#watched = undefined;
  }

  /** One request, also for a lock that is free. A caller that does not wait never stands behind others. */
  async #enter(wake: Wake): Promise<LeaseAttempt> {
    const { names } = this.settings;
    const { lease, epoch } = this.session;
    const [queue, ofSession] = [names.queue(this.key), names.session(lease)];
    const oldest: OneOf = { ...queue, which: 'oldest' };
    const alone: Condition = { ...queue, createdAt: 0n };
    const { found, revision, succeeded } = await this.#create({
      when: [{ key: this.#name, createdAt: 0n }, { key: ofSession, modifiedAt: epoch }, ...(wake ? [] : [alone])],
      steps: [
        { get: oldest },
        { get: { ...queue, which: 'youngest' } },
        { put: this.#name, value: this.value, lease },
        { get: names.countedFrom },
      ],
      otherwise: [{ get: oldest }, { get: this.#name }, { get: ofSession }],
    });
    const [first, other, mark, countedFrom] = found;
    if (succeeded) {
      this.#createdAt = revision;
      return first && other ? this.#wait(first, other, revision, wake) : this.#granted(revision, countedFrom);
    }
    if (other) {
      this.#createdAt = other.createdAt;
      return this.#look(other.createdAt, wake);
    }
    if (first && !wake) return refused(first);
    this.session.epoch = mark?.modifiedAt ?? 0n;
    return this.#enter(wake);
  }

  /** Trusts only a new reading of its own key, which may have gone with the predecessor, or instead of it. */
  async #look(createdAt: bigint, wake: Wake): Promise<LeaseAttempt> {
    const { client, names } = this.settings;
    const queue = names.queue(this.key);
    const { found, revision } = await client.transact({
      steps: [
        { get: this.#name },
        { get: { ...queue, which: 'oldest' } },
        { get: { ...queue, which: 'youngest', createdUpTo: createdAt - 1n } },
        { get: names.countedFrom },
      ],
    });
    const [own, first, before, countedFrom] = found;
    if (own?.createdAt !== createdAt) {
      this.#createdAt = undefined;
      return this.#enter(wake);
    }
    return first && before ? this.#wait(first, before, revision, wake) : this.#granted(createdAt, countedFrom);
  }

  async #granted(createdAt: bigint, countedFrom: KeyValue | undefined): Promise<LeaseAttempt> {
    const { client, names } = this.settings;
    const fencingToken = await fencingTokenOf(createdAt, countedFrom, names.countedFrom, client);
    const { ttlMs, sentAt, gone: revoked } = this.session;
    this.#hasLock = true;
    return { acquired: true, fencingToken, ttlMs, sentAt, revoked };
  }

  #wait(first: KeyValue, { createdAt, key }: KeyValue, revision: bigint, wake: Wake): LeaseAttempt {
    const isWatched = this.#watched?.createdAt === createdAt && this.#watched.watch.isCurrent();
    if (!wake || !isWatched) this.unwatch();
    if (wake && !isWatched) {
      const watch = this.settings.watch.onDeletion(key, revision + 1n, wake);
      this.#watched = { createdAt, watch, sessionEnd: new AbortListener(this.session.gone, wake) };
    }
    return refused(first);
  }

  async #create(request: Transaction): Promise<Outcome> {
    try {
      return await this.settings.client.transact(request);
    } catch (error) {
      if (!isRefusal(error)) this.#inDoubt = true;
      this.#noteEnd(error);
      throw error;
    }
  }

  async #releaseForSure(): Promise<boolean> {
    const [{ client }, createdAt] = [this.settings, this.#createdAt];
    const removed =
      createdAt !== undefined &&
      (await client.transact({ when: [{ key: this.#name, createdAt }], steps: [{ remove: this.#name }] })).succeeded;
    this.session.freeName(this.#name);
    return removed;
  }

  async #releaseInDoubt(): Promise<boolean> {
    const { client, names } = this.settings;
    const { lease } = this.session;
    try {
      const mark = { put: names.session(lease), value: '', lease };
      const { revision } = await client.transact({ steps: [{ remove: this.#name }, mark] });
      if (revision > this.session.epoch) this.session.epoch = revision;
      return true;
    } catch (error) {
      this.#noteEnd(error);
      if (this.session.gone.aborted) return false;
      // A full server creates nothing any more: a deletion is enough.
      if (!isFull(error)) throw error;
      await client.transact({ steps: [{ remove: this.#name }] });
      return true;
    }
  }

  #noteEnd(error: unknown): void {
    if (error instanceof EtcdError && error.code === 'NOT_FOUND') this.session.end();
  }
}

function refused(first: KeyValue): LeaseAttempt {
  const holder = unpackHolder(first.value);
  return { acquired: false, retryAfterMs: null, ...(holder ? { holder } : {}) };
}
