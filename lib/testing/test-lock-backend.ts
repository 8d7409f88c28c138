import {
  type BackendHealth,
  type Clock,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockBackendError,
  MOST_PERMITS,
} from '../core/index.js';
import { MemoryLeaseStore } from '../backends/memory/index.js';

/** A backend in memory that fails on request, to see what an application does then. */
export class TestLockBackend implements LeaseStore {
  readonly name = 'test';
  readonly guarantee = 'best-effort';
  readonly traits = { maxPermits: MOST_PERMITS };
  readonly #store: MemoryLeaseStore;
  /** By owner. */
  readonly #revocations = new Map<string, { readonly key: string; readonly controller: AbortController }>();
  readonly #waiting = new Set<() => void>();
  #failure: Error | undefined;
  #strangers = 0;

  constructor(options: { readonly clock?: Clock } = {}) {
    this.#store = new MemoryLeaseStore(options.clock);
  }

  /** `down` from `breakDown` until `repair`, for tests of health pages. Nobody is told of the change. */
  get health(): HealthSource {
    const failure = (): Error | undefined => this.#failure;
    return {
      get current(): BackendHealth {
        const { message } = failure() ?? {};
        return message === undefined ? { status: 'up' } : { status: 'down', detail: message };
      },
      onChange: () => () => undefined,
    };
  }

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    // Nobody asks again after an error of this kind.
    if (this.#failure)
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: this.#failure });
    const attempt = await this.#store.tryAcquire(key, owner, ttlMs, metadata);
    if (!attempt.acquired) return attempt;
    const controller = new AbortController();
    this.#revocations.set(owner, { key, controller });
    return { ...attempt, revoked: controller.signal };
  }

  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    this.#answer();
    return this.#store.renew(key, owner, ttlMs);
  }

  async release(key: string, owner: string): Promise<boolean> {
    this.#answer();
    this.#revocations.delete(owner);
    return this.#store.release(key, owner);
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    this.#waiting.add(wake);
    const unwatch = this.#store.watch(key, owner, wake);
    return () => {
      this.#waiting.delete(wake);
      unwatch();
    };
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    this.#answer();
    return this.#store.isHeldBy(key, owner);
  }

  async look(key: string): Promise<LeaseState> {
    this.#answer();
    return this.#store.look(key);
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const revocation = this.#revocations.get(owner);
    const isEvicted = await this.release(key, owner);
    if (isEvicted) revocation?.controller.abort();
    return isEvicted;
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    this.#answer();
    yield* this.#store.keys(prefix);
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  /** The keys that are held, with their namespace. */
  get held(): string[] {
    return this.#store.held();
  }

  /** The holders of `key` lose it now: their signals abort before this returns, with the reason `revoked`. */
  revoke(key: string): void {
    this.#store.revoke(key);
    for (const revocation of this.#revocations.values()) if (revocation.key === key) revocation.controller.abort();
  }

  /**
   * Another process holds `key` from now on, until what this resolves to is called. Rejects when it is held already.
   */
  async occupy(key: string): Promise<() => Promise<void>> {
    this.#strangers += 1;
    const owner = `stranger ${this.#strangers}`;
    const attempt = await this.#store.tryAcquire(key, owner, 2 ** 31, { host: 'elsewhere', pid: 0, label: owner });
    if (!attempt.acquired) throw new Error(`"${key}" is held already`);
    return async () => void (await this.#store.release(key, owner));
  }

  /** Every request fails from now on, also of those who wait already, as if the server were gone. */
  breakDown(failure = new Error('the test backend is down')): void {
    this.#failure = failure;
    for (const wake of this.#waiting) wake();
  }

  repair(): void {
    this.#failure = undefined;
  }

  #answer(): void {
    if (this.#failure) throw this.#failure;
  }
}
