import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import {
  assertKey,
  assertWhole,
  Deadline,
  type GivenBackend,
  type LeaseStore,
  type LockBackend,
  LockBackendError,
  LockConfigurationError,
  LockError,
  openBackend,
  outside,
  refuseOption,
} from '../core/index.js';
import type { LockAcquireResult, LockStore } from './lock-store.js';

const MAX_TTL_MS = 30 * 86_400_000;

type Probing = LeaseStore & Required<Pick<LeaseStore, 'isHeldBy'>>;

/**
 * A store for `@nestjs/locks`, on any backend whose leases each have a TTL of their own. Register it with the package's
 * `LocksStorage`. Nest opens and closes it with the application. It owns its backend, as a `LockService` does.
 * @throws LockConfigurationError for a backend whose TTL is a session's: etcd, ZooKeeper, SQL `session` and `row`
 */
export function lockStore(given: GivenBackend): BackendLockStore {
  const backend = outside(() => openBackend(given));
  try {
    return new BackendLockStore(backend);
  } catch (error) {
    if (typeof given === 'function') backend.close().catch(() => undefined);
    throw error;
  }
}

/** The store that `lockStore` returns. Calls reject with `LockBackendError` when the backend gives no answer. */
export class BackendLockStore implements LockStore, AsyncDisposable {
  readonly #store: Probing;
  /** Owners whose first answer is not there yet. */
  readonly #asking = new Set<string>();
  readonly #metadata = { host: hostname(), pid: process.pid };

  /** @internal */
  constructor(readonly backend: LockBackend) {
    assertOwnTtl(backend.store);
    this.#store = backend.store;
  }

  /**
   * The token grows with each acquisition of the key. An owner is used once, as the package does: of two processes that
   * ask with the same one at the same instant, both may be told that it has the key.
   */
  async acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult> {
    const stored = storedOwner(key, owner);
    const request = { owner: stored, ttlMs: this.#ttlOf(ttl), metadata: this.#metadata };
    if (this.#asking.has(stored)) return { acquired: false };
    this.#asking.add(stored);
    try {
      if (await this.#ask('acquire', key, () => this.#store.isHeldBy(key, stored))) return { acquired: false };
      const lease = await outside(() => this.backend.acquire(key, { ...request, deadline: Deadline.after(0) }));
      return lease ? { acquired: true, fencingToken: Number(lease.fencingToken) } : { acquired: false };
    } finally {
      this.#asking.delete(stored);
    }
  }

  async renew(key: string, owner: string, ttl: number): Promise<boolean> {
    const stored = storedOwner(key, owner);
    const ttlMs = this.#ttlOf(ttl);
    return this.#ask('renew', key, () => this.#store.renew(key, stored, ttlMs));
  }

  /** One that fails is asked again in the background: the key is not to stay closed for the rest of a long TTL. */
  async release(key: string, owner: string): Promise<boolean> {
    const stored = storedOwner(key, owner);
    const request = { owner: stored, ttlMs: MAX_TTL_MS, metadata: this.#metadata };
    try {
      return await this.#ask('release', key, async () => {
        // Some stores call a lease released that had expired, and that nobody has taken since.
        return (await this.#store.isHeldBy(key, stored)) && this.#store.release(key, stored);
      });
    } catch (error) {
      outside(() => this.backend.abandon(key, { ...request, deadline: Deadline.after(0) }));
      throw error;
    }
  }

  /** Called by Nest. A server that cannot be reached is no reason not to start. @throws LockConfigurationError */
  async onModuleInit(): Promise<void> {
    try {
      await outside(() => this.#store.start?.());
    } catch (error) {
      if (error instanceof LockConfigurationError) throw error;
    }
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

  /** A shorter one than the store can keep is lengthened: a lock may outlive its holder's trust, never the reverse. */
  #ttlOf(ttl: number): number {
    assertWhole('ttl', ttl, 1, MAX_TTL_MS);
    return Math.max(ttl, this.#store.ttlLimits?.minMs ?? 0);
  }

  async #ask<T>(operation: string, key: string, request: () => Promise<T>): Promise<T> {
    try {
      return await outside(request);
    } catch (cause) {
      if (cause instanceof LockError) throw cause;
      throw new LockBackendError(key, { backend: this.backend.name, operation, cause });
    }
  }
}

/** Stores keep owners of a few plain characters, each of one key. The bytes of UTF-16 differ for any two texts. */
function storedOwner(key: string, owner: string): string {
  assertKey(key);
  if (typeof owner !== 'string') refuseOption('owner', 'must be a string');
  return createHash('sha256').update(`${key.length}:${key}${owner}`, 'utf16le').digest('base64url');
}

function assertOwnTtl(store: LeaseStore): asserts store is Probing {
  const { name, endsWith = 'ttl' } = store;
  if (endsWith !== 'ttl') {
    const why = `its locks end with the ${endsWith} of a process, and @nestjs/locks gives each lock a TTL of its own`;
    throw new LockConfigurationError(`${name} cannot be a lock store: ${why}`, 'backend');
  }
  if (store.isHeldBy) return;
  throw new LockConfigurationError(`${name} cannot be a lock store: it has no isHeldBy`, 'backend');
}
