import {
  type Caller,
  type Guarantee,
  type HealthSource,
  type Holder,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockBackendError,
  NotSentError,
  SessionEntries,
  systemClock,
  getEndOfTrust,
  type StoreTraits,
} from '../../core/index.js';
import { HeldZnode } from './held-znode.js';
import { decodeNamePart } from './znode-name.js';
import { listChildren, type OwnZnode } from './znodes.js';
import type { QueueEntry, Wake } from './queue-entry.js';
import { SequentialEntry } from './sequential-entry.js';
import { EnsembleClient } from './ensemble-client.js';
import { EphemeralEntry } from './simple/ephemeral-entry.js';
import { ConnectionLostError, isFinalError, SessionExpiredError } from './error.js';
import type { ResolvedOptions } from './options.js';
import type { ZooKeeperSession } from './session.js';

const KEYS_PER_PAGE = 100;

/** Maximum number of permits of a key. It is limited because one response lists all claims to a key. */
const MAX_PERMITS_PER_KEY = 1_000;

const ENTRY_CLASSES = { sequential: SequentialEntry, simple: EphemeralEntry };

interface LeaseRequest {
  readonly key: string;
  readonly owner: string;
  readonly metadata: HolderMetadata;
  readonly caller: Caller | undefined;
  readonly wake: Wake;
}

export class ZooKeeperLeaseStore implements LeaseStore {
  readonly name = 'zookeeper';
  readonly guarantee: Guarantee;
  readonly traits: StoreTraits;
  readonly #ensemble: EnsembleClient;
  readonly #entries = new SessionEntries<ZooKeeperSession, QueueEntry>();
  readonly #wakeCallbacksOnReconnect = new Set<() => void>();

  constructor(private readonly options: ResolvedOptions) {
    this.guarantee = options.servers.length > 1 ? 'consensus' : 'durable';
    this.traits = { endsWith: 'session', ...(options.mode === 'sequential' && { maxPermits: MAX_PERMITS_PER_KEY }) };
    this.#ensemble = new EnsembleClient(options);
    this.health.onChange(({ status }) => status === 'up' && this.#wakeOnReconnect());
  }

  get health(): HealthSource {
    return this.#ensemble.health;
  }

  async start(): Promise<void> {
    await this.#ensemble.getConnectedSession();
  }

  async tryAcquire(
    key: string,
    owner: string,
    _ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    const wake = this.#entries.getWakeCallback(owner);
    const request = { key, owner, metadata, caller, wake };
    try {
      return await (wake ? this.#attempt(request) : this.#attemptWithRetry(request));
    } catch (error) {
      if (!isFinalError(error)) throw error;
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: error });
    }
  }

  async renew(_key: string, owner: string): Promise<boolean> {
    return (await this.#entries.get(owner)?.heldZnode?.renew()) ?? false;
  }

  /**
   * Shares one request among concurrent releases: in mode `simple` a second one could delete the next holder's znode.
   */
  async release(_key: string, owner: string): Promise<boolean> {
    const entry = this.#entries.get(owner);
    if (!entry) return false;
    entry.pendingRelease ??= this.#release(owner, entry);
    return entry.pendingRelease;
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    const unwatch = this.#entries.watch(owner, wake);
    return () => {
      this.#wakeCallbacksOnReconnect.delete(wake);
      unwatch();
    };
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const { basePath, connection, EntryClass } = await this.#syncAndGetContext();
    return EntryClass.isHeldBy(connection, basePath, key, owner);
  }

  async look(key: string): Promise<LeaseState> {
    const { basePath, connection, EntryClass } = await this.#syncAndGetContext();
    return EntryClass.readLeaseState(connection, basePath, key);
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const { basePath, connection, EntryClass } = await this.#syncAndGetContext();
    return EntryClass.evict(connection, basePath, key, owner);
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    const { basePath, connection, EntryClass } = await this.#syncAndGetContext();
    const names = await listChildren(connection, basePath);
    const keys = names.flatMap((name) => decodeNamePart(name) ?? []).filter((key) => key.startsWith(prefix));
    for (let from = 0; from < keys.length; from += KEYS_PER_PAGE) {
      const keysOfPage = keys.slice(from, from + KEYS_PER_PAGE);
      // The server keeps the parent znode of a free key for a while.
      const holderFlags = await Promise.all(keysOfPage.map((key) => EntryClass.isHeld(connection, basePath, key)));
      yield keysOfPage.filter((_, index) => holderFlags[index]);
    }
  }

  close(): Promise<void> {
    return this.#ensemble.close();
  }

  /** Syncs first, because a follower may lag behind its leader. */
  async #syncAndGetContext() {
    const { basePath, mode } = this.options;
    const { connection } = await this.#ensemble.getConnectedSession();
    await connection.send('sync', { path: basePath });
    return { basePath, connection, EntryClass: ENTRY_CLASSES[mode] };
  }

  /** Attempts once more if the connection ended after the owner's entry was made. */
  async #attemptWithRetry(request: LeaseRequest): Promise<LeaseAttempt> {
    try {
      return await this.#attempt(request);
    } catch (error) {
      if (!(error instanceof ConnectionLostError) || !this.#entries.get(request.owner)) throw error;
      return this.#attempt(request);
    }
  }

  async #attempt(request: LeaseRequest): Promise<LeaseAttempt> {
    const { owner, caller, wake } = request;
    const session = await this.#getSessionOrFailEarly(wake);
    const hasEarlierEntry = this.#entries.get(owner) !== undefined;
    if (caller?.onSend() === false)
      throw hasEarlierEntry ? new Error('nobody waits for it any more') : new NotSentError();
    const entry = this.#entries.getOrCreate(owner, session, () => this.#createEntry(request, session));
    for (;;) {
      const requestedAt = systemClock.now();
      const position = await entry.ensurePosition(wake);
      if (!position.znode) return this.#refuse(request, position.holder);
      const trustedFrom = session.getTrustStart(requestedAt);
      const isTrusted = systemClock.now() < getEndOfTrust(trustedFrom, session.times.trustMs);
      if (isTrusted) return this.#grant(entry, position.znode, trustedFrom);
      await session.confirmWithLeader();
    }
  }

  /** Returns the session. For a waiter, fails at once while no server is reachable, and wakes it on the reconnect. */
  #getSessionOrFailEarly(wake: Wake): Promise<ZooKeeperSession> {
    const { failure } = this.#ensemble;
    if (!wake || !failure) return this.#ensemble.getConnectedSession();
    this.#wakeCallbacksOnReconnect.add(wake);
    return Promise.reject(failure);
  }

  #wakeOnReconnect(): void {
    const wakeCallbacks = [...this.#wakeCallbacksOnReconnect];
    this.#wakeCallbacksOnReconnect.clear();
    for (const wake of wakeCallbacks) wake();
  }

  #createEntry({ key, owner, metadata }: LeaseRequest, session: ZooKeeperSession): QueueEntry {
    const { basePath, acl, mode } = this.options;
    return new ENTRY_CLASSES[mode](session, { key, owner, metadata, basePath, acl });
  }

  #grant(entry: QueueEntry, znode: OwnZnode, trustedFrom: number): LeaseAttempt {
    const { session } = entry;
    if (session.endSignal.aborted) throw new SessionExpiredError();
    if (entry.heldZnode?.znode.czxid !== znode.czxid) {
      entry.heldZnode?.end();
      entry.heldZnode = new HeldZnode(session, znode);
    }
    return {
      acquired: true,
      fencingToken: znode.czxid,
      ttlMs: session.times.trustMs,
      sentAt: trustedFrom,
      revoked: entry.heldZnode.revoked,
    };
  }

  /** Deletes the entry of a caller that does not wait. If the deletion fails, the core releases the entry later. */
  async #refuse({ key, owner, wake }: LeaseRequest, holder: Holder | undefined): Promise<LeaseAttempt> {
    const refusal = { acquired: false, retryAfterMs: null, ...(holder ? { holder } : {}) } as const;
    if (wake) return refusal;
    try {
      await this.release(key, owner);
      return refusal;
    } catch (error) {
      if (isFinalError(error)) throw error;
      return { ...refusal, staysInLine: true };
    }
  }

  async #release(owner: string, entry: QueueEntry): Promise<boolean> {
    const { heldZnode } = entry;
    entry.unwatch();
    heldZnode?.end();
    try {
      const isDeleted = !entry.session.endSignal.aborted && (await entry.release());
      this.#entries.delete(owner);
      return isDeleted && heldZnode !== undefined;
    } catch (error) {
      entry.pendingRelease = undefined;
      if (isFinalError(error)) this.#entries.delete(owner);
      throw error;
    }
  }
}
