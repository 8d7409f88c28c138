import {
  type AdoptedLease,
  type Caller,
  type HealthSource,
  type HolderMetadata,
  isExclusive,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockBackendError,
  LockConfigurationError,
  NotSentError,
  packHolder,
  type TransferredLease,
  SessionEntries,
  type StoreTraits,
} from '../../core/index.js';
import { DatabaseSizeMonitor } from './database-size.js';
import { DeletionWatch } from './deletion-watch.js';
import { EtcdClient } from './transport/client.js';
import { attemptForCaller, retryOnStaleConnection } from './attempts.js';
import { EtcdError, isFinalError, isDatabaseFull } from './error.js';
import type { ResolvedEtcdOptions } from './options.js';
import { adoptEntry, undoAdoption } from './adoption.js';
import { EtcdLockNames } from './lock-names.js';
import { ExclusiveEntry } from './exclusive-entry.js';
import type { QueueEntry, QueueEntryContext } from './queue-entry.js';
import { ShareEntry } from './share-entry.js';
import { listKeys, readHolderEntry, readLeaseState, getValuePrefix } from './readings.js';
import { pollWhileDown } from './recovery.js';
import { EtcdSession } from './session.js';
import type { KeyValue } from './transport/messages.js';
import type { OnSend } from './transport/request-line.js';

/**
 * Lease store with a queue entry for each owner of this process. All entries are under one etcd lease. One entry for
 * each session, as in the mutex of etcd's own client, would let two callers of a process hold one lock.
 */
export class EtcdLeaseStore implements LeaseStore {
  readonly name = 'etcd';
  readonly guarantee = 'consensus';
  /** `maxPermits` is limited because one response lists all claims to a key. */
  readonly traits = { endsWith: 'session', maxPermits: 1_000 } satisfies StoreTraits;
  readonly #context: QueueEntryContext;
  readonly #databaseSizeMonitor: DatabaseSizeMonitor;
  readonly #stopPolling: () => void;
  readonly #entries = new SessionEntries<EtcdSession, QueueEntry>();
  /** Session of each failed adoption, by new owner. The server may have carried out the request, or may still do so. */
  readonly #unconfirmedAdoptions = new Map<string, EtcdSession>();
  #session: EtcdSession | undefined;
  #sessionOpening: Promise<EtcdSession> | undefined;
  #isClosed = false;

  constructor(private readonly options: ResolvedEtcdOptions) {
    const client = new EtcdClient(options);
    const names = new EtcdLockNames(options.prefix);
    this.#context = { client, names, deletionWatch: new DeletionWatch(client) };
    this.#databaseSizeMonitor = new DatabaseSizeMonitor(client);
    this.#stopPolling = pollWhileDown(client, names.sessionKeyName(0n));
  }

  /**
   * Reads one key, which fails when credentials or permissions are wrong, and compares the clusters of the endpoints.
   * @throws LockConfigurationError
   */
  async start(): Promise<void> {
    const { client, names } = this.#context;
    try {
      await client.read([names.sessionKeyName(0n)]);
      await client.compareClusters();
    } catch (error) {
      if (!isFinalError(error)) throw error;
      throw new LockConfigurationError(`etcd refuses to answer us: ${error.message}`, 'credentials');
    }
  }

  async tryAcquire(
    key: string,
    owner: string,
    _ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    try {
      const attempt = await attemptForCaller(caller, (onSend) => this.#tryAcquireOnce(key, owner, metadata, onSend));
      this.#databaseSizeMonitor.checkIfDue();
      return attempt;
    } catch (error) {
      if (isDatabaseFull(error)) await this.#databaseSizeMonitor.check();
      if (!isFinalError(error)) throw error;
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: error });
    }
  }

  async passOn(_key: string, owner: string, ttlMs: number): Promise<boolean> {
    const entry = this.#entries.get(owner);
    const isPassedOn = entry !== undefined && (await entry.passOn(ttlMs));
    if (isPassedOn) this.#entries.delete(owner);
    return isPassedOn;
  }

  async adopt(
    key: string,
    transferred: TransferredLease,
    { owner, metadata }: AdoptedLease,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    const session = await this.#getCurrentSession();
    const adoption = { key, formerOwner: transferred.owner, owner, value: packEntryValue(owner, metadata) };
    try {
      const adoptedEntry = await attemptForCaller(caller, (onSend) =>
        adoptEntry(this.#context, session, adoption, onSend),
      );
      if (!adoptedEntry) return { acquired: false, retryAfterMs: null };
      const createEntry = (): QueueEntry => this.#createEntry(session, key, owner, metadata, adoptedEntry);
      const { ttlMs, heartbeatSentAt: sentAt, endSignal: revoked } = session;
      this.#unconfirmedAdoptions.delete(owner);
      this.#entries.getOrCreate(owner, session, createEntry);
      return { acquired: true, fencingToken: transferred.fencingToken, ttlMs, sentAt, revoked };
    } catch (error) {
      if (!(error instanceof NotSentError)) this.#unconfirmedAdoptions.set(owner, session);
      session.endIfLeaseMissing(error);
      throw error;
    }
  }

  async renew(_key: string, owner: string): Promise<boolean> {
    return (await this.#entries.get(owner)?.renew()) ?? false;
  }

  async release(key: string, owner: string): Promise<boolean> {
    const entry = this.#entries.get(owner);
    if (!entry) return this.#undoAdoption(key, owner);
    const wasHeld = await retryOnStaleConnection(() => entry.release());
    this.#entries.delete(owner);
    return wasHeld;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    return (await readHolderEntry(this.#context, key, owner)) !== undefined;
  }

  look(key: string): Promise<LeaseState> {
    return readLeaseState(this.#context, key);
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const holderEntry = await readHolderEntry(this.#context, key, owner);
    if (!holderEntry) return false;
    const { key: entryKey, createRevision } = holderEntry;
    const deletion = { when: [{ key: entryKey, createRevision }], steps: [{ remove: entryKey }] };
    return (await this.#context.client.transact(deletion)).succeeded;
  }

  keys(prefix: string): AsyncGenerator<readonly string[]> {
    return listKeys(this.#context, prefix);
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    return this.#entries.watch(owner, wake);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopPolling();
    await this.#endSession();
    this.#context.client.close();
  }

  get health(): HealthSource {
    return this.#context.client.health;
  }

  async #tryAcquireOnce(key: string, owner: string, metadata: HolderMetadata, onSend: OnSend): Promise<LeaseAttempt> {
    if (this.#isClosed) throw new EtcdError('the backend is closed', 'FAILED_PRECONDITION');
    const session = await this.#getCurrentSession();
    const createEntry = (): QueueEntry => this.#createEntry(session, key, owner, metadata);
    const entry = this.#entries.getOrCreate(owner, session, createEntry);
    const wake = this.#entries.getWakeCallback(owner);
    try {
      const attempt = await entry.tryAcquire({ wake, onSend });
      const isWaiting = wake !== undefined;
      if (!attempt.acquired && !isWaiting) await this.release(key, owner);
      return attempt;
    } catch (error) {
      // The server has nothing to release, so the core may not call `release`. This removes the entry of this process.
      if (error instanceof NotSentError && !entry.mayExist) await this.release(key, owner);
      throw error;
    }
  }

  /** Undoes the owner's unconfirmed adoption, if any. Resolves to false, because no caller was told of a lease. */
  async #undoAdoption(key: string, owner: string): Promise<boolean> {
    const session = this.#unconfirmedAdoptions.get(owner);
    if (session?.endSignal.aborted === false) await undoAdoption(this.#context, session, key, owner);
    this.#unconfirmedAdoptions.delete(owner);
    return false;
  }

  #createEntry(
    session: EtcdSession,
    key: string,
    owner: string,
    metadata: HolderMetadata,
    adoptedEntry?: KeyValue,
  ): QueueEntry {
    const claimSuffix = isExclusive(owner) ? '' : owner.slice(owner.lastIndexOf('~'));
    const EntryClass = claimSuffix ? ShareEntry : ExclusiveEntry;
    return new EntryClass(this.#context, session, key, packEntryValue(owner, metadata), claimSuffix, adoptedEntry);
  }

  #getCurrentSession(): Promise<EtcdSession> | EtcdSession {
    if (this.#session?.isOver === false) return this.#session;
    this.#sessionOpening ??= this.#openSession().finally(() => (this.#sessionOpening = undefined));
    return this.#sessionOpening;
  }

  /** Ends the previous session first. Its entries would otherwise stay in the queues, ahead of new entries. */
  async #openSession(): Promise<EtcdSession> {
    const { client, names } = this.#context;
    await this.#endSession();
    this.#session = await EtcdSession.open(client, names, this.options.sessionTtlMs);
    return this.#session;
  }

  /** Revokes the lease, which deletes all entries. Without an answer, the entries expire with the lease. */
  async #endSession(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session && !session.endSignal.aborted) await session.revoke().catch(() => undefined);
  }
}

/** The owner is the first field, because `readHolderEntry` compares the start of the value. */
function packEntryValue(owner: string, metadata: HolderMetadata): string {
  return `${getValuePrefix(owner)},${packHolder(metadata).slice(1)}`;
}
