import {
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  LockBackendError,
  LockConfigurationError,
} from '../../core/index.js';
import { ClientSession } from './client-session.js';
import { DatabaseSize } from './database-size.js';
import { DeletionWatch } from './deletion-watch.js';
import { EtcdClient } from './transport/client.js';
import { EtcdError, isFull } from './error.js';
import type { ResolvedEtcdOptions } from './options.js';
import { StaleConnectionError } from './transport/grpc-connection.js';
import { isOwn, packLease } from './lease-value.js';
import { EtcdLockNames } from './lock-names.js';
import { QueueEntry, type QueueEntrySettings } from './queue-entry.js';
import { recover } from './recovery.js';
import { TokenCount } from './token-count.js';

/** Asking again would bring the same answer. */
const HOPELESS: ReadonlySet<string> = new Set([
  'INVALID_ARGUMENT',
  'PERMISSION_DENIED',
  'FAILED_PRECONDITION',
  'UNIMPLEMENTED',
]);

/**
 * The queue entries of one process, all under one lease. After Burrows, "The Chubby lock service for loosely-coupled
 * distributed systems" (OSDI 2006), and the recipe of etcd's own client, which has one entry per session and so lets
 * two callers in.
 */
export class EtcdLeaseStore implements LeaseStore {
  readonly name = 'etcd';
  readonly guarantee = 'consensus';
  readonly endsWith = 'session';
  readonly #client: EtcdClient;
  readonly #sessions: ClientSession;
  readonly #settings: QueueEntrySettings;
  readonly #size: DatabaseSize;
  readonly #stopRecovery: () => void;
  readonly #entries = new Map<string, QueueEntry>();
  readonly #wakes = new Map<string, () => void>();
  #closed = false;

  constructor(options: ResolvedEtcdOptions) {
    const client = new EtcdClient(options);
    const names = new EtcdLockNames(options.prefix);
    this.#client = client;
    this.#size = new DatabaseSize(client);
    this.#stopRecovery = recover(client, names.session(0n));
    this.#sessions = new ClientSession(client, names, options.sessionTtlMs);
    this.#settings = { client, names, watch: new DeletionWatch(client), tokens: new TokenCount(client, names) };
  }

  /** Shows what trying again will not mend: credentials and permissions. */
  async start(): Promise<void> {
    try {
      await this.#client.read([this.#settings.names.session(0n)]);
    } catch (error) {
      if (!isHopeless(error)) throw error;
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
      if (!isHopeless(error)) throw error;
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
    const { client, names } = this.#settings;
    const { found } = await client.transact({ steps: [{ get: { ...names.queue(key), which: 'oldest' } }] });
    return found[0] !== undefined && isOwn(found[0].value, owner);
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    this.#wakes.set(owner, wake);
    return () => {
      this.#wakes.delete(owner);
      this.#entries.get(owner)?.unwatch();
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopRecovery();
    await this.#sessions.close().catch(() => undefined);
    this.#client.close();
  }

  get health(): HealthSource {
    return this.#client.health;
  }

  async #attempt(key: string, owner: string, metadata: HolderMetadata): Promise<LeaseAttempt> {
    if (this.#closed) throw new EtcdError('the backend is closed', 'FAILED_PRECONDITION');
    const entry = await this.#entryOf(key, owner, metadata);
    const wake = this.#wakes.get(owner);
    const attempt = await entry.ask(wake);
    if (!attempt.acquired && !wake) await this.release(key, owner);
    return attempt;
  }

  async #entryOf(key: string, owner: string, metadata: HolderMetadata): Promise<QueueEntry> {
    const session = await this.#sessions.get();
    const present = this.#entries.get(owner);
    if (present?.session === session) return present;
    present?.unwatch();
    const entry = new QueueEntry(this.#settings, session, key, packLease(owner, metadata));
    this.#entries.set(owner, entry);
    return entry;
  }
}

/**
 * A network may have forgotten an idle connection, which shows only in use. An entry knows what may have been done
 * already.
 */
async function onceMore<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (!(error instanceof StaleConnectionError)) throw error;
    return task();
  }
}

function isHopeless(error: unknown): error is EtcdError {
  return error instanceof EtcdError && HOPELESS.has(error.code);
}
