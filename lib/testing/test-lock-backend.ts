import {
  type AcquireRequest,
  type BackendHealth,
  type Clock,
  type HealthSource,
  type Lease,
  type LockBackend,
  PollingBackend,
} from '../core/index.js';
import { MemoryLeaseStore } from '../backends/memory/index.js';

/** A backend in memory that fails on request, to see what an application does then. */
export class TestLockBackend implements LockBackend {
  readonly name = 'test';
  readonly guarantee = 'best-effort';
  readonly #store: MemoryLeaseStore;
  readonly #inner: PollingBackend;
  readonly #revocations = new Map<string, AbortController>();
  #failure: Error | undefined;
  /** Aborts when all that is under way fails. */
  #breakDown = new AbortController();
  #strangers = 0;

  constructor(options: { readonly clock?: Clock } = {}) {
    this.#store = new MemoryLeaseStore(options.clock);
    this.#inner = new PollingBackend(this.#store);
  }

  /** `down` from `breakDown` until `repair`, for tests of health pages. Nobody is told of the change. */
  get health(): HealthSource {
    const current: BackendHealth = this.#failure ? { status: 'down', detail: this.#failure.message } : { status: 'up' };
    return { current, onChange: () => () => undefined };
  }

  async acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    this.#answer();
    const { signal: broken } = this.#breakDown;
    const signal = request.signal ? AbortSignal.any([request.signal, broken]) : broken;
    const lease = await this.#inner.acquire(key, { ...request, signal });
    if (!lease) return null;
    const revocation = new AbortController();
    this.#revocations.set(key, revocation);
    return {
      ...lease,
      renew: async () => {
        this.#answer();
        return lease.renew();
      },
      release: async () => {
        this.#answer();
        return lease.release();
      },
      revoked: revocation.signal,
    };
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    this.#answer();
    return this.#store.isHeldBy(key, owner);
  }

  async close(): Promise<void> {
    await this.#inner.close();
  }

  /** The keys that are held, with their namespace. */
  get held(): string[] {
    return this.#store.keys();
  }

  /** The holder of `key` loses it now: its signal aborts before this returns, with the reason `revoked`. */
  revoke(key: string): void {
    this.#store.revoke(key);
    this.#revocations.get(key)?.abort();
  }

  /** Another process holds `key` from now on, until what this resolves to is called. Rejects when it is held already. */
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
    this.#breakDown.abort(failure);
    this.#breakDown = new AbortController();
  }

  repair(): void {
    this.#failure = undefined;
  }

  #answer(): void {
    if (this.#failure) throw this.#failure;
  }
}
