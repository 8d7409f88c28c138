import {
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  LockBackendError,
  LockConfigurationError,
} from '../../core/index.js';
import { CurrentSession } from './current-session.js';
import { DatabaseSize } from './database-size.js';
import { DeletionWatch } from './deletion-watch.js';
import { EtcdClient } from './transport/client.js';
import { EtcdError, isFull } from './error.js';
import type { ResolvedEtcdOptions } from './options.js';
import { StaleConnectionError } from './transport/grpc-connection.js';
import { isOwn, packLease } from './lease-value.js';
import { LockNames } from './lock-names.js';
import { Place, type PlaceSettings } from './queue-entry.js';
import { Recovery } from './recovery.js';
import { TokenCount } from './token-count.js';

/** Asking again would bring the same answer. */
const HOPELESS: ReadonlySet<string> = new Set([
  'INVALID_ARGUMENT',
  'PERMISSION_DENIED',
  'FAILED_PRECONDITION',
  'UNIMPLEMENTED',
]);

/**
 * The places of one process in the queues of its locks, all under one lease. After Burrows, "The Chubby lock service for
 * loosely-coupled distributed systems" (OSDI 2006), and the recipe of etcd's own client, which has one place per session and
 * so lets two callers of one process in.
 */
export class EtcdLeaseStore implements LeaseStore {
  readonly name = 'etcd';
  readonly guarantee = 'consensus';
  readonly endsWith = 'session';
  readonly #client: EtcdClient;
  readonly #sessions: CurrentSession;
  readonly #settings: PlaceSettings;
  readonly #size: DatabaseSize;
  readonly #recovery: Recovery;
  readonly #places = new Map<string, Place>();
  readonly #wakes = new Map<string, () => void>();
  #closed = false;

  constructor(options: ResolvedEtcdOptions) {
    const client = new EtcdClient(options);
    const names = new LockNames(options.prefix);
    this.#client = client;
    this.#size = new DatabaseSize(client);
    this.#recovery = new Recovery(client, names.session(0n));
    this.#sessions = new CurrentSession(client, names, options.ttlSeconds);
    this.#settings = { client, names, watch: new DeletionWatch(client), tokens: new TokenCount(client, names) };
  }

  /** Shows what trying again will not mend: who we are, and what we may. */
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
    return (await this.#places.get(owner)?.isOurs()) ?? false;
  }

  async release(_key: string, owner: string): Promise<boolean> {
    const place = this.#places.get(owner);
    if (!place) return false;
    const left = await onceMore(() => place.leave());
    this.#places.delete(owner);
    return left;
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
      this.#places.get(owner)?.unwatch();
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#recovery.end();
    await this.#sessions.close().catch(() => undefined);
    this.#client.close();
  }

  get health(): HealthSource {
    return this.#client.health;
  }

  async #attempt(key: string, owner: string, metadata: HolderMetadata): Promise<LeaseAttempt> {
    if (this.#closed) throw new EtcdError('the backend is closed', 'FAILED_PRECONDITION');
    const place = await this.#placeOf(key, owner, metadata);
    const wake = this.#wakes.get(owner);
    const attempt = await place.ask(wake);
    if (!attempt.acquired && !wake) await this.release(key, owner);
    return attempt;
  }

  async #placeOf(key: string, owner: string, metadata: HolderMetadata): Promise<Place> {
    const session = await this.#sessions.get();
    const present = this.#places.get(owner);
    if (present?.session === session) return present;
    present?.unwatch();
    const place = new Place(this.#settings, session, key, packLease(owner, metadata));
    this.#places.set(owner, place);
    return place;
  }
}

/**
 * A connection that was idle may have been forgotten by what is in between, which shows only when it is used. A new one need not
 * fail whoever asks only once. Places know what may have been carried out already.
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
