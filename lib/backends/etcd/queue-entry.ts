import { AbortListener, type LeaseAttempt, unpackHolder } from '../../core/index.js';
import type { DeletionWatch } from './deletion-watch.js';
import type { EtcdClient } from './transport/client.js';
import { EtcdError, isDatabaseFull, isRefusal } from './error.js';
import { toFencingToken } from './fencing-token.js';
import type { EtcdSession } from './session.js';
import type { EtcdLockNames } from './lock-names.js';
import type { KeyValue, Outcome, Transaction } from './transport/messages.js';
import type { Watch, WatchedKeys } from './transport/watch-stream.js';

export interface QueueEntryContext {
  readonly client: EtcdClient;
  readonly names: EtcdLockNames;
  readonly watch: DeletionWatch;
}

/** Function to call when the entry may have moved up; `undefined` for a caller that does not wait. */
export type Wake = (() => void) | undefined;

/** Keys to watch: one entry with the revision of its creation, or a range with 0. */
interface WatchTarget {
  readonly keys: WatchedKeys;
  readonly createdAt: bigint;
}

/**
 * One owner's key in the queue of a lock, under the lease of its process. The oldest entries hold the lock, in the order
 * of their revisions: as many as fit. Each other entry watches for one event that may let it in.
 *
 * A request without an answer may still be carried out at any time, for example by a member that was frozen. A release
 * in doubt therefore writes the session's own key in the transaction that deletes the entry. An entry is created only
 * while the session's key is unchanged, so that a late creation has no effect. A late deletion does have an effect:
 * therefore the name is not used again.
 */
export abstract class QueueEntry {
  protected readonly name: string;
  /** Revision of the entry's creation, which is its number in the queue. Unknown before the answer. */
  protected createdAt: bigint | undefined;
  #isCreationInDoubt = false;
  #wasGranted = false;
  #watched: (WatchTarget & { readonly watch: Watch; readonly sessionEnd: AbortListener }) | undefined;

  constructor(
    protected readonly context: QueueEntryContext,
    readonly session: EtcdSession,
    protected readonly key: string,
    protected readonly value: string,
    share: string,
  ) {
    this.name = session.takeName(key, share);
  }

  /** Takes the lock if it is free. Otherwise the entry stays in the queue, if there is a `wake` to call. */
  tryAcquire(wake: Wake): Promise<LeaseAttempt> {
    return this.createdAt === undefined ? this.enterQueue(wake) : this.checkPosition(this.createdAt, wake);
  }

  /** Returns whether the owner holds the lock, for a whole TTL from this call on. */
  async renew(): Promise<boolean> {
    return this.createdAt !== undefined && this.session.confirmKey(this.name, this.createdAt);
  }

  /** Releases the lock, or leaves the queue. Returns whether the owner held the lock. */
  async release(): Promise<boolean> {
    this.unwatch();
    if (this.session.endSignal.aborted) return false;
    const isDeleted = await (this.#isCreationInDoubt ? this.#deleteInDoubt() : this.#delete());
    return isDeleted && this.#wasGranted;
  }

  protected abstract enterQueue(wake: Wake): Promise<LeaseAttempt>;

  /** Reads the queue again, and trusts nothing older: any entry may have been deleted, even the owner's own. */
  protected abstract checkPosition(createdAt: bigint, wake: Wake): Promise<LeaseAttempt>;

  unwatch(): void {
    this.#watched?.watch.end();
    this.#watched?.sessionEnd.end();
    this.#watched = undefined;
  }

  protected async grant(createdAt: bigint, tokenOrigin: KeyValue | undefined): Promise<LeaseAttempt> {
    const { client, names } = this.context;
    const fencingToken = await toFencingToken(createdAt, tokenOrigin, names.tokenOriginName, client);
    const { ttlMs, heartbeatSentAt: sentAt, endSignal: revoked } = this.session;
    this.#wasGranted = true;
    return { acquired: true, fencingToken, ttlMs, sentAt, revoked };
  }

  /** Refuses the owner. Watches the target from the next revision on, if the owner waits. */
  protected refuse(first: KeyValue, target: WatchTarget, revision: bigint, wake: Wake): LeaseAttempt {
    const { keys, createdAt } = target;
    const watched = this.#watched;
    const isWatched = watched?.createdAt === createdAt && watched.keys.key === keys.key && watched.watch.isCurrent();
    if (!wake || !isWatched) this.unwatch();
    if (wake && !isWatched) {
      const watch = this.context.watch.watchDeletion(keys, revision + 1n, wake);
      this.#watched = { ...target, watch, sessionEnd: new AbortListener(this.session.endSignal, wake) };
    }
    return refusalOf(first);
  }

  protected async transactCreation(request: Transaction): Promise<Outcome> {
    try {
      return await this.context.client.transact(request);
    } catch (error) {
      if (!isRefusal(error)) this.#isCreationInDoubt = true;
      this.#endSessionWithoutLease(error);
      throw error;
    }
  }

  async #delete(): Promise<boolean> {
    const [{ client }, createdAt] = [this.context, this.createdAt];
    const isDeleted =
      createdAt !== undefined &&
      (await client.transact({ when: [{ key: this.name, createdAt }], steps: [{ remove: this.name }] })).succeeded;
    this.session.freeName(this.name);
    return isDeleted;
  }

  async #deleteInDoubt(): Promise<boolean> {
    const { client, names } = this.context;
    const { lease } = this.session;
    try {
      const putSessionKey = { put: names.sessionName(lease), value: '', lease };
      const { revision } = await client.transact({ steps: [{ remove: this.name }, putSessionKey] });
      if (revision > this.session.sessionKeyRevision) this.session.sessionKeyRevision = revision;
      return true;
    } catch (error) {
      this.#endSessionWithoutLease(error);
      if (this.session.endSignal.aborted) return false;
      // A full server creates nothing any more, so a deletion alone is enough.
      if (!isDatabaseFull(error)) throw error;
      await client.transact({ steps: [{ remove: this.name }] });
      return true;
    }
  }

  #endSessionWithoutLease(error: unknown): void {
    if (error instanceof EtcdError && error.code === 'NOT_FOUND') this.session.end();
  }
}

/** Returns the refusal of a caller that stands behind the first entry of the queue. */
export function refusalOf(first: KeyValue): LeaseAttempt {
  const holder = unpackHolder(first.value);
  return { acquired: false, retryAfterMs: null, ...(holder ? { holder } : {}) };
}
