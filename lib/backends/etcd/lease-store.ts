import {
  type HealthSource,
  type HolderMetadata,
  isExclusive,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockBackendError,
  LockConfigurationError,
  packHolder,
  SessionEntries,
} from '../../core/index.js';
import { DatabaseSize } from './database-size.js';
import { DeletionWatch } from './deletion-watch.js';
import { EtcdClient } from './transport/client.js';
import { EtcdError, isFinal, isFull } from './error.js';
import type { ResolvedEtcdOptions } from './options.js';
import { StaleConnectionError } from './transport/grpc-connection.js';
import { EtcdLockNames } from './lock-names.js';
import { ExclusiveEntry } from './exclusive-entry.js';
import type { QueueEntry, QueueEntrySettings } from './queue-entry.js';
import { ShareEntry } from './share-entry.js';
import { listKeys, readHeld, readState, startOf } from './readings.js';
import { recover } from './recovery.js';
import { EtcdSession } from './session.js';

/**
 * The queue entries of one process, all under one lease. After Burrows, "The Chubby lock service for loosely-coupled
 * distributed systems" (OSDI 2006). etcd's own client has one entry per session, and so lets two callers in.
 */
export class EtcdLeaseStore implements LeaseStore {
  readonly name = 'etcd';
  readonly guarantee = 'consensus';
  /** All claims to a key are listed together: there may not be very many. */
  readonly traits = { endsWith: 'session', maxPermits: 1_000 } as const;
  readonly #settings: QueueEntrySettings;
  readonly #size: DatabaseSize;
  readonly #stopRecovery: () => void;
  readonly #entries = new SessionEntries<EtcdSession, QueueEntry>();
  #session: EtcdSession | undefined;
  #opening: Promise<EtcdSession> | undefined;
  #closed = false;

  constructor(private readonly options: ResolvedEtcdOptions) {
    const client = new EtcdClient(options);
    const names = new EtcdLockNames(options.prefix);
    this.#settings = { client, names, watch: new DeletionWatch(client) };
    this.#size = new DatabaseSize(client);
    this.#stopRecovery = recover(client, names.session(0n));
  }

  /** Shows what trying again will not mend: credentials and permissions. */
  async start(): Promise<void> {
    const { client, names } = this.#settings;
    try {
      await client.read([names.session(0n)]);
    } catch (error) {
      if (!isFinal(error)) throw error;
      throw new LockConfigurationError(`etcd refuses to answer us: ${error.message}`, 'credentials');
    }
  }

  async tryAcquire(key: string, owner: string, _ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    try {
      const attempt = await onceMore(() => this.#attempt(key, owner, metadata));
      this.#size.lookNowAndThen();
      return attempt;
    } catch (error) {
      if (isFull(error)) await this.#size.look();
      if (!isFinal(error)) throw error;
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: error });
    }
  }

  async renew(_key: string, owner: string): Promise<boolean> {
    return (await this.#entries.get(owner)?.isHeld()) ?? false;
  }

  async release(_key: string, owner: string): Promise<boolean> {
    const entry = this.#entries.get(owner);
    if (!entry) return false;
    const released = await onceMore(() => entry.release());
    this.#entries.delete(owner);
    return released;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    return (await readHeld(this.#settings, key, owner)) !== undefined;
  }

  look(key: string): Promise<LeaseState> {
    return readState(this.#settings, key);
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const held = await readHeld(this.#settings, key, owner);
    if (!held) return false;
    const { key: name, createdAt } = held;
    const remove = { when: [{ key: name, createdAt }], steps: [{ remove: name }] };
    return (await this.#settings.client.transact(remove)).succeeded;
  }

  keys(prefix: string): AsyncGenerator<readonly string[]> {
    return listKeys(this.#settings, prefix);
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    return this.#entries.watch(owner, wake);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopRecovery();
    await this.#endSession();
    this.#settings.client.close();
  }

  get health(): HealthSource {
    return this.#settings.client.health;
  }

  async #attempt(key: string, owner: string, metadata: HolderMetadata): Promise<LeaseAttempt> {
    if (this.#closed) throw new EtcdError('the backend is closed', 'FAILED_PRECONDITION');
    const session = await this.#currentSession();
    const create = (): QueueEntry => this.#createEntry(session, key, owner, metadata);
    const entry = this.#entries.getOrCreate(owner, session, create);
    const wake = this.#entries.wakeUpOf(owner);
    const attempt = await entry.ask(wake);
    if (!attempt.acquired && !wake) await this.release(key, owner);
    return attempt;
  }

  #createEntry(session: EtcdSession, key: string, owner: string, metadata: HolderMetadata): QueueEntry {
    // JSON for operators: the owner, and the fields for `unpackHolder`.
    const value = `${startOf(owner)},${packHolder(metadata).slice(1)}`;
    const share = isExclusive(owner) ? '' : owner.slice(owner.lastIndexOf('~'));
    const Entry = share ? ShareEntry : ExclusiveEntry;
    return new Entry(this.#settings, session, key, value, share);
  }

  #currentSession(): Promise<EtcdSession> | EtcdSession {
    if (this.#session?.over === false) return this.#session;
    this.#opening ??= this.#openSession().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /** Entries of the last session would stand in the way of those of the next. */
  async #openSession(): Promise<EtcdSession> {
    const { client, names } = this.#settings;
    await this.#endSession();
    this.#session = await EtcdSession.grant(client, names, this.options.sessionTtlMs);
    return this.#session;
  }

  /** Ends all entries at once. When the server does not hear of it, they end by themselves. */
  async #endSession(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session && !session.gone.aborted) await session.revoke().catch(() => undefined);
  }
}

/** A forgotten connection shows only in use. An entry knows which of its requests may have been carried out. */
async function onceMore<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (!(error instanceof StaleConnectionError)) throw error;
    return task();
  }
}
