import { AbortListener, type LeaseAttempt, unpackHolder } from '../../core/index.js';
import type { DeletionWatch } from './deletion-watch.js';
import type { EtcdClient } from './transport/client.js';
import { EtcdError, isFull, isRefusal } from './error.js';
import { fencingTokenOf } from './fencing-token.js';
import type { EtcdSession } from './session.js';
import type { EtcdLockNames } from './lock-names.js';
import type { KeyValue, Outcome, Transaction } from './transport/messages.js';
import type { Watch, Watched } from './transport/watch-stream.js';

export interface QueueEntrySettings {
  readonly client: EtcdClient;
  readonly names: EtcdLockNames;
  readonly watch: DeletionWatch;
}

/** Called when another look is worth it. A caller without one does not wait. */
export type Wake = (() => void) | undefined;

/**
 * One owner's key below that of a lock, under the lease of its process. The oldest have the lock, by etcd's own count:
 * as many as fit. Each of the others watches for one event that may let it in.
 *
 * A request without an answer may still be carried out at any time, for example by a member that was frozen. A release
 * in doubt therefore writes the session's own key in the transaction that deletes the entry. An entry is created only
 * while that key is unchanged. A late creation then has no effect. A late deletion would: the name is not reused.
 */
export abstract class QueueEntry {
  protected readonly name: string;
  /** etcd's revision at the creation: the number in the queue. Unknown before the answer. */
  protected createdAt: bigint | undefined;
  #inDoubt = false;
  #hasLock = false;
  #watched:
    | { readonly key: string; readonly of: bigint; readonly watch: Watch; readonly sessionEnd: AbortListener }
    | undefined;

  constructor(
    protected readonly settings: QueueEntrySettings,
    readonly session: EtcdSession,
    protected readonly key: string,
    protected readonly value: string,
    share: string,
  ) {
    this.name = session.takeName(key, share);
  }

  /** Takes the lock if it is free. Otherwise stands in line, if there is a `wake` to call. */
  ask(wake: Wake): Promise<LeaseAttempt> {
    return this.createdAt === undefined ? this.enter(wake) : this.look(this.createdAt, wake);
  }

  /** Whether the owner has the lock, for a whole TTL from this call on. */
  async isHeld(): Promise<boolean> {
    return this.createdAt !== undefined && this.session.isThere(this.name, this.createdAt);
  }

  /** Releases the lock, or leaves the queue. Whether the owner had the lock. */
  async release(): Promise<boolean> {
    this.unwatch();
    if (this.session.gone.aborted) return false;
    const released = await (this.#inDoubt ? this.#releaseInDoubt() : this.#releaseForSure());
    return released && this.#hasLock;
  }

  protected abstract enter(wake: Wake): Promise<LeaseAttempt>;

  /** Trusts only a new reading of its own key, which may have gone with others, or instead of them. */
  protected abstract look(createdAt: bigint, wake: Wake): Promise<LeaseAttempt>;

  unwatch(): void {
    this.#watched?.watch.end();
    this.#watched?.sessionEnd.end();
    this.#watched = undefined;
  }

  protected async granted(createdAt: bigint, countedFrom: KeyValue | undefined): Promise<LeaseAttempt> {
    const { client, names } = this.settings;
    const fencingToken = await fencingTokenOf(createdAt, countedFrom, names.countedFrom, client);
    const { ttlMs, sentAt, gone: revoked } = this.session;
    this.#hasLock = true;
    return { acquired: true, fencingToken, ttlMs, sentAt, revoked };
  }

  /** @param watched the entry that was created at `of`, or 0 for any of a range */
  protected wait(
    first: KeyValue,
    { watched, of }: { readonly watched: Watched; readonly of: bigint },
    revision: bigint,
    wake: Wake,
  ): LeaseAttempt {
    const isWatched = this.#watched?.of === of && this.#watched.key === watched.key && this.#watched.watch.isCurrent();
    if (!wake || !isWatched) this.unwatch();
    if (wake && !isWatched) {
      const watch = this.settings.watch.onDeletion(watched, revision + 1n, wake);
      this.#watched = { key: watched.key, of, watch, sessionEnd: new AbortListener(this.session.gone, wake) };
    }
    return refused(first);
  }

  protected async create(request: Transaction): Promise<Outcome> {
    try {
      return await this.settings.client.transact(request);
    } catch (error) {
      if (!isRefusal(error)) this.#inDoubt = true;
      this.#noteEnd(error);
      throw error;
    }
  }

  async #releaseForSure(): Promise<boolean> {
    const [{ client }, createdAt] = [this.settings, this.createdAt];
    const removed =
      createdAt !== undefined &&
      (await client.transact({ when: [{ key: this.name, createdAt }], steps: [{ remove: this.name }] })).succeeded;
    this.session.freeName(this.name);
    return removed;
  }

  async #releaseInDoubt(): Promise<boolean> {
    const { client, names } = this.settings;
    const { lease } = this.session;
    try {
      const mark = { put: names.session(lease), value: '', lease };
      const { revision } = await client.transact({ steps: [{ remove: this.name }, mark] });
      if (revision > this.session.epoch) this.session.epoch = revision;
      return true;
    } catch (error) {
      this.#noteEnd(error);
      if (this.session.gone.aborted) return false;
      // A full server creates nothing any more: a deletion is enough.
      if (!isFull(error)) throw error;
      await client.transact({ steps: [{ remove: this.name }] });
      return true;
    }
  }

  #noteEnd(error: unknown): void {
    if (error instanceof EtcdError && error.code === 'NOT_FOUND') this.session.end();
  }
}

export function refused(first: KeyValue): LeaseAttempt {
  const holder = unpackHolder(first.value);
  return { acquired: false, retryAfterMs: null, ...(holder ? { holder } : {}) };
}
