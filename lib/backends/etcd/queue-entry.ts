import { AbortListener, type LeaseAttempt, NotSentError, unpackHolder } from '../../core/index.js';
import type { DeletionWatch } from './deletion-watch.js';
import type { EtcdClient } from './transport/client.js';
import { isDatabaseFull, isRefusal } from './error.js';
import { toFencingToken } from './fencing-token.js';
import { type EtcdSession, grantLease, revokeInBackground } from './session.js';
import type { EtcdLockNames } from './lock-names.js';
import type { KeyValue, TransactionOutcome, Transaction } from './transport/messages.js';
import type { OnSend } from './transport/request-line.js';
import type { Watch, WatchedKeys } from './transport/watch-stream.js';

export interface QueueEntryContext {
  readonly client: EtcdClient;
  readonly names: EtcdLockNames;
  readonly deletionWatch: DeletionWatch;
}

/** Function to call when the entry may have moved up; `undefined` for a caller that does not wait. */
export type Wake = (() => void) | undefined;

/** Call of `tryAcquire`. */
export interface EntryAttempt {
  readonly wake: Wake;
  readonly onSend: OnSend;
}

/** Keys to watch: one entry and the revision of its creation, or a range and 0. */
interface WatchTarget {
  readonly keys: WatchedKeys;
  readonly createRevision: bigint;
}

/**
 * Key of one owner in the queue of a lock, under the lease of its process. The oldest entries hold the lock, as many as
 * fit. Each other entry watches for one event after which it may hold the lock.
 *
 * A request without an answer may be carried out later, for example by a member that was frozen. The release of an
 * entry whose creation is in doubt therefore also writes the session's own key. Entries are created only while that key
 * is unchanged, so that a late creation has no effect. The deletion by such a release may also be carried out late, so
 * the name of the entry is not used again.
 */
export abstract class QueueEntry {
  protected readonly name: string;
  protected createRevision: bigint | undefined;
  #isCreationInDoubt = false;
  #wasGranted = false;
  /** Lease under which a `passOn` without an answer may have put the entry. */
  #leaseInDoubt: bigint | undefined;
  #currentWatch: (WatchTarget & { readonly watch: Watch; readonly sessionEndListener: AbortListener }) | undefined;

  constructor(
    protected readonly context: QueueEntryContext,
    readonly session: EtcdSession,
    protected readonly key: string,
    protected readonly value: string,
    claimSuffix: string,
    /** Existing entry of the former owner, for an owner that adopts the lock. @default a new entry is created */
    adoptedEntry?: KeyValue,
  ) {
    this.name = adoptedEntry?.key ?? session.takeName(key, claimSuffix);
    this.createRevision = adoptedEntry?.createRevision;
    this.#wasGranted = adoptedEntry !== undefined;
  }

  /** Whether the server may have this entry, or may still create it. */
  get mayExist(): boolean {
    return this.createRevision !== undefined || this.#isCreationInDoubt;
  }

  tryAcquire(attempt: EntryAttempt): Promise<LeaseAttempt> {
    return this.createRevision === undefined
      ? this.enterQueue(attempt)
      : this.checkPosition(this.createRevision, attempt);
  }

  /** Resolves to true when the owner holds the lock for a whole TTL from this call on. */
  async renew(): Promise<boolean> {
    return this.createRevision !== undefined && this.session.confirmKey(this.name, this.createRevision);
  }

  /**
   * Moves the entry to a new lease that ends after `ttlMs`, so that the entry outlives the session. Also writes the
   * session's own key if the creation is in doubt. A late creation could otherwise bring the entry back after the next
   * owner has deleted it.
   */
  async passOn(ttlMs: number): Promise<boolean> {
    const { name: key, value, createRevision, session } = this;
    const { client } = this.context;
    if (createRevision === undefined) return false;
    const { lease } = await grantLease(client, ttlMs);
    const steps = [{ put: key, value, lease }, ...(this.#isCreationInDoubt ? [session.sessionKeyStep] : [])];
    this.#leaseInDoubt = lease;
    const { succeeded, revision } = await client.transact({ when: [{ key, createRevision }], steps });
    this.#leaseInDoubt = undefined;
    if (!succeeded) {
      revokeInBackground(client, lease);
      return false;
    }
    if (this.#isCreationInDoubt) session.recordSessionKeyRevision(revision);
    session.retireName(key);
    return true;
  }

  async release(): Promise<boolean> {
    this.unwatch();
    const hasSessionEnded = this.session.endSignal.aborted;
    if (hasSessionEnded && this.#leaseInDoubt === undefined) return false;
    const isDeleted = await (this.#isCreationInDoubt && !hasSessionEnded ? this.#deletePermanently() : this.#delete());
    if (this.#leaseInDoubt !== undefined) revokeInBackground(this.context.client, this.#leaseInDoubt);
    return isDeleted && this.#wasGranted;
  }

  protected abstract enterQueue(attempt: EntryAttempt): Promise<LeaseAttempt>;

  /** Reads the queue again: any entry may have been deleted meanwhile, even the owner's own. */
  protected abstract checkPosition(createRevision: bigint, attempt: EntryAttempt): Promise<LeaseAttempt>;

  unwatch(): void {
    this.#currentWatch?.watch.end();
    this.#currentWatch?.sessionEndListener.end();
    this.#currentWatch = undefined;
  }

  protected async grant(createRevision: bigint, tokenOrigin: KeyValue | undefined): Promise<LeaseAttempt> {
    const { client, names } = this.context;
    const fencingToken = await toFencingToken(createRevision, tokenOrigin, names.tokenOriginName, client);
    const { ttlMs, heartbeatSentAt: sentAt, endSignal: revoked } = this.session;
    this.#wasGranted = true;
    return { acquired: true, fencingToken, ttlMs, sentAt, revoked };
  }

  /** Returns a refusal that names the holder of `firstEntry`. Watches `target` if the caller waits. */
  protected refuseAndWatch(firstEntry: KeyValue, target: WatchTarget, revision: bigint, wake: Wake): LeaseAttempt {
    const { keys, createRevision } = target;
    const currentWatch = this.#currentWatch;
    const isWatched =
      currentWatch?.createRevision === createRevision &&
      currentWatch.keys.key === keys.key &&
      currentWatch.watch.isCurrent();
    if (!wake || !isWatched) this.unwatch();
    if (wake && !isWatched) {
      const watch = this.context.deletionWatch.watchDeletion(keys, revision + 1n, wake);
      this.#currentWatch = { ...target, watch, sessionEndListener: new AbortListener(this.session.endSignal, wake) };
    }
    return createRefusal(firstEntry);
  }

  protected async transactCreation(request: Transaction, onSend: OnSend): Promise<TransactionOutcome> {
    try {
      return await this.context.client.transact(request, onSend);
    } catch (error) {
      if (!isRefusal(error) && !(error instanceof NotSentError)) this.#isCreationInDoubt = true;
      this.session.endIfLeaseMissing(error);
      throw error;
    }
  }

  /** Deletes the entry if it was created, and frees its name. Resolves to whether there was an entry to delete. */
  async #delete(): Promise<boolean> {
    const [{ client }, createRevision] = [this.context, this.createRevision];
    const isDeleted =
      createRevision !== undefined &&
      (await client.transact({ when: [{ key: this.name, createRevision }], steps: [{ remove: this.name }] })).succeeded;
    this.session.freeName(this.name);
    return isDeleted;
  }

  /** Deletes the entry and writes the session's own key, so that a late creation of the entry has no effect. */
  async #deletePermanently(): Promise<boolean> {
    const { client } = this.context;
    try {
      const { revision } = await client.transact({ steps: [{ remove: this.name }, this.session.sessionKeyStep] });
      this.session.recordSessionKeyRevision(revision);
      return true;
    } catch (error) {
      this.session.endIfLeaseMissing(error);
      if (this.session.endSignal.aborted) return false;
      // A full server carries out no creation any more, so the session's own key need not be written.
      if (!isDatabaseFull(error)) throw error;
      await client.transact({ steps: [{ remove: this.name }] });
      return true;
    }
  }
}

export function createRefusal(firstEntry: KeyValue): LeaseAttempt {
  const holder = unpackHolder(firstEntry.value);
  return { acquired: false, retryAfterMs: null, ...(holder ? { holder } : {}) };
}
