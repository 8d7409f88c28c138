import {
  type AdoptedLease,
  type BackendHealth,
  type Clock,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockBackendError,
  MAX_PERMITS,
  type TransferredLease,
  type StoreTraits,
} from '../core/index.js';
import { MemoryLeaseStore } from '../backends/memory/index.js';

/** Backend in memory that fails on request, for tests of an application's reaction to failures. */
export class TestLockBackend implements LeaseStore {
  readonly name = 'test';
  readonly guarantee = 'best-effort';
  readonly traits = { maxPermits: MAX_PERMITS } satisfies StoreTraits;
  readonly #store: MemoryLeaseStore;
  /** Controllers that abort the `revoked` signals of granted leases, by owner. */
  readonly #revocations = new Map<string, { readonly key: string; readonly controller: AbortController }>();
  readonly #wakeCallbacks = new Set<() => void>();
  #failure: Error | undefined;
  #occupyCount = 0;

  constructor(options: { readonly clock?: Clock } = {}) {
    this.#store = new MemoryLeaseStore(options.clock);
  }

  /** Health of the backend: `down` from `breakDown` until `repair`. Changes are not reported to listeners. */
  get health(): HealthSource {
    const getFailure = (): Error | undefined => this.#failure;
    return {
      get current(): BackendHealth {
        const { message } = getFailure() ?? {};
        return message === undefined ? { status: 'up' } : { status: 'down', detail: message };
      },
      onChange: () => () => undefined,
    };
  }

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    // The service retries after other errors. A `LockBackendError` reaches the caller at once.
    if (this.#failure)
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: this.#failure });
    const attempt = await this.#store.tryAcquire(key, owner, ttlMs, metadata);
    return this.#makeRevocable(key, owner, attempt);
  }

  async passOn(key: string, owner: string, ttlMs: number): Promise<boolean> {
    this.#throwIfBroken();
    return this.#store.passOn(key, owner, ttlMs);
  }

  async adopt(key: string, transferred: TransferredLease, adopted: AdoptedLease): Promise<LeaseAttempt> {
    this.#throwIfBroken();
    return this.#makeRevocable(key, adopted.owner, await this.#store.adopt(key, transferred, adopted));
  }

  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    this.#throwIfBroken();
    return this.#store.renew(key, owner, ttlMs);
  }

  async release(key: string, owner: string): Promise<boolean> {
    this.#throwIfBroken();
    this.#revocations.delete(owner);
    return this.#store.release(key, owner);
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    this.#wakeCallbacks.add(wake);
    const unwatch = this.#store.watch(key, owner, wake);
    return () => {
      this.#wakeCallbacks.delete(wake);
      unwatch();
    };
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    this.#throwIfBroken();
    return this.#store.isHeldBy(key, owner);
  }

  async look(key: string): Promise<LeaseState> {
    this.#throwIfBroken();
    return this.#store.look(key);
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const revocation = this.#revocations.get(owner);
    const isEvicted = await this.release(key, owner);
    if (isEvicted) revocation?.controller.abort();
    return isEvicted;
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    this.#throwIfBroken();
    yield* this.#store.keys(prefix);
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  /** Keys that are held, with their namespace. */
  get held(): string[] {
    return this.#store.held();
  }

  /**
   * Revokes `key`: its holders lose the lock with the reason `revoked`, and their signals abort before the call
   * returns.
   */
  revoke(key: string): void {
    this.#store.revoke(key);
    for (const revocation of this.#revocations.values()) if (revocation.key === key) revocation.controller.abort();
  }

  /**
   * Acquires `key` as another process would. Resolves to a function that releases the key. Rejects when the key is
   * held.
   */
  async occupy(key: string): Promise<() => Promise<void>> {
    this.#occupyCount += 1;
    const owner = `stranger ${this.#occupyCount}`;
    const attempt = await this.#store.tryAcquire(key, owner, 2 ** 31, { host: 'elsewhere', pid: 0, label: owner });
    if (!attempt.acquired) throw new Error(`"${key}" is held already`);
    return async () => void (await this.#store.release(key, owner));
  }

  /** Makes every request fail until `repair`, also those of callers that wait already, as if the server were gone. */
  breakDown(failure = new Error('the test backend is down')): void {
    this.#failure = failure;
    for (const wake of this.#wakeCallbacks) wake();
  }

  repair(): void {
    this.#failure = undefined;
  }

  #makeRevocable(key: string, owner: string, attempt: LeaseAttempt): LeaseAttempt {
    if (!attempt.acquired) return attempt;
    const controller = new AbortController();
    this.#revocations.set(owner, { key, controller });
    return { ...attempt, revoked: controller.signal };
  }

  #throwIfBroken(): void {
    if (this.#failure) throw this.#failure;
  }
}
