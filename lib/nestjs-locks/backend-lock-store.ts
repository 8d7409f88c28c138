import { createHash, randomBytes } from 'node:crypto';
import {
  assertKey,
  assertWhole,
  Deadline,
  type GivenBackend,
  isLockError,
  type LeaseStore,
  type LockBackend,
  LockBackendError,
  LockConfigurationError,
  openBackend,
  runOutsideLocks,
  ownMetadata,
  refuseOption,
  startBackend,
} from '../core/index.js';
import type { LockAcquireResult, LockStore } from './lock-store.js';

const MAX_TTL_MS = 30 * 86_400_000;

/** So many leases are remembered. Whose is forgotten is looked up. */
const MAX_REMEMBERED = 100_000;

type Looking = LeaseStore & Required<Pick<LeaseStore, 'look'>>;

/**
 * A store for `@nestjs/locks`, on any backend whose leases each have a TTL of their own. Register it with the package's
 * `LocksStorage`. Nest opens and closes it with the application. It owns its backend, as a `LockService` does.
 * @throws LockConfigurationError for a backend whose TTL is a session's: etcd, ZooKeeper, SQL `session` and `row`
 */
export function lockStore(given: GivenBackend): BackendLockStore {
  const backend = runOutsideLocks(() => openBackend(given));
  try {
    return new BackendLockStore(backend);
  } catch (error) {
    if (typeof given === 'function') backend.close().catch(() => undefined);
    throw error;
  }
}

/** The store that `lockStore` returns. Calls reject with `LockBackendError` when the backend gives no answer. */
export class BackendLockStore implements LockStore, AsyncDisposable {
  readonly #store: Looking;
  /** The owners of the leases that this process got, by the names that the package gave them. */
  readonly #leases = new Map<string, string>();
  readonly #metadata = ownMetadata(undefined);

  /** @internal */
  constructor(readonly backend: LockBackend) {
    assertSuitable(backend.store);
    this.#store = backend.store;
  }

  /** The token grows with each acquisition of the key. */
  async acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult> {
    const name = nameOf(key, owner);
    // No two attempts have one owner, so the store refuses the second one whoever makes it.
    const attempt = name + randomBytes(16).toString('base64url');
    const request = { owner: attempt, ttlMs: this.#ttlOf(ttl), metadata: this.#metadata, deadline: Deadline.after(0) };
    const lease = await runOutsideLocks(() => this.backend.acquire(key, request));
    if (!lease) return { acquired: false };
    this.#remember(name, attempt);
    return { acquired: true, fencingToken: Number(lease.fencingToken) };
  }

  async renew(key: string, owner: string, ttl: number): Promise<boolean> {
    const ttlMs = this.#ttlOf(ttl);
    const name = nameOf(key, owner);
    return this.#ask('renew', key, async () => {
      const attempt = this.#leases.get(name) ?? (await this.#find(key, name));
      const renewed = attempt !== undefined && (await this.#store.renew(key, attempt, ttlMs));
      if (!renewed) this.#leases.delete(name);
      return renewed;
    });
  }

  /** One that fails is asked again in the background: the key is not to stay closed for the rest of a long TTL. */
  async release(key: string, owner: string): Promise<boolean> {
    const name = nameOf(key, owner);
    const remembered = this.#leases.get(name);
    this.#leases.delete(name);
    try {
      return await this.#ask('release', key, async () => {
        // Some stores call a lease released that had expired, and that nobody has taken since.
        const attempt = await this.#find(key, name);
        return attempt !== undefined && this.#store.release(key, attempt);
      });
    } catch (error) {
      if (remembered !== undefined) this.#abandon(key, remembered);
      throw error;
    }
  }

  /** Called by Nest. A server that cannot be reached is no reason not to start. @throws LockConfigurationError */
  onModuleInit(): Promise<void> {
    return runOutsideLocks(() => startBackend(this.backend, () => undefined));
  }

  /** Called by Nest, after the package has released what it holds. */
  onApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /** Closes the backend. What is held ends by its TTL. Idempotent. */
  close(): Promise<void> {
    return this.backend.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The owner on the server, if that is an attempt of this name. */
  async #find(key: string, name: string): Promise<string | undefined> {
    const { holder } = await this.#store.look(key);
    return holder?.owner.startsWith(name) === true ? holder.owner : undefined;
  }

  #remember(name: string, attempt: string): void {
    this.#leases.delete(name);
    this.#leases.set(name, attempt);
    const [oldest] = this.#leases.keys();
    if (this.#leases.size > MAX_REMEMBERED && oldest !== undefined) this.#leases.delete(oldest);
  }

  #abandon(key: string, owner: string): void {
    const request = { owner, ttlMs: MAX_TTL_MS, metadata: this.#metadata, deadline: Deadline.after(0) };
    runOutsideLocks(() => this.backend.abandon(key, request));
  }

  /** A shorter one than the store can keep is lengthened: a lock may outlive its holder's trust, never the reverse. */
  #ttlOf(ttl: number): number {
    assertWhole('ttl', ttl, 1, MAX_TTL_MS);
    return Math.max(ttl, this.#store.traits?.ttlLimits?.minMs ?? 0);
  }

  async #ask<T>(operation: string, key: string, request: () => Promise<T>): Promise<T> {
    try {
      return await runOutsideLocks(request);
    } catch (cause) {
      if (isLockError(cause)) throw cause;
      throw new LockBackendError(key, { backend: this.backend.name, operation, cause });
    }
  }
}

/** Stores keep owners of a few plain characters, each of one key. The bytes of UTF-16 differ for any two texts. */
function nameOf(key: string, owner: string): string {
  assertKey(key);
  if (typeof owner !== 'string') refuseOption('owner', 'must be a string');
  const hash = createHash('sha256').update(`${key.length}:${key}${owner}`, 'utf16le');
  return hash.digest().subarray(0, 18).toString('base64url');
}

function assertSuitable(store: LeaseStore): asserts store is Looking {
  const { name, traits: { endsWith = 'ttl', writesUncompared = false } = {} } = store;
  if (endsWith !== 'ttl') {
    const why = `its locks end with the ${endsWith} of a process, and @nestjs/locks gives each lock a TTL of its own`;
    throw new LockConfigurationError(`${name} cannot be a lock store: ${why}`, 'backend');
  }
  if (writesUncompared) {
    const why = 'it compares owners in one step and writes in the next, and @nestjs/locks asks for both in one';
    throw new LockConfigurationError(`${name} cannot be a lock store: ${why}. Choose another mode`, 'backend');
  }
  if (store.look) return;
  throw new LockConfigurationError(`${name} cannot be a lock store: it has no look()`, 'backend');
}
