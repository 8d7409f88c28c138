import type { EventStreamOptions, LockEventStream } from './events/lock-event-stream.js';
import type { LockObserver, LockSnapshot } from './events/lock-observer.js';
import type { BackendHealth } from './contract/health.js';
import { assertKey } from './contract/key.js';
import type { KeyHolder, KeyState } from './contract/key-state.js';
import { SERVICE_BRAND } from './contract/service-brand.js';
import { runOutsideLocks } from './holding/call-tree.js';
import type { LockHandle } from './holding/lock-handle.js';
import type { SequencerState } from './holding/sequencer.js';
import { checkSequencer } from './holding/sequencer-check.js';
import { withKeepAlive } from './kit/keep-alive.js';
import type { LeaderWork, LeadOptions } from './leading/lead-options.js';
import type { Leadership } from './leading/leadership.js';
import { LockBackend } from './leasing/lock-backend.js';
import { type GivenBackend, openBackend } from './leasing/open-backend.js';
import { evictHolders, listKeys, readKeyState } from './looking/readings.js';
import { describeHolds } from './looking/snapshots.js';
import {
  type AcquireOptions,
  type AdoptOptions,
  assertServiceOptions,
  keyPrefixOf,
  type LockServiceOptions,
  type ResolvedOptions,
  type TryAcquireOptions,
} from './options/lock-options.js';
import { createServiceParts, type ServiceParts } from './service-parts.js';
import type { LockSet } from './several/lock-set.js';
import type { WantedKey } from './several/wanted-keys.js';

/**
 * Takes and releases locks of one backend. Works without Nest: `new LockService(redis({ url }))`. `close()` also closes
 * the backend, even one that was opened before.
 */
export class LockService implements AsyncDisposable {
  readonly backend: LockBackend;
  /** Namespace with a colon, or an empty text, with which keys begin on the server, in events and in `inspect()`. */
  readonly keyPrefix: string;
  readonly #parts: ServiceParts;

  /** @throws LockConfigurationError */
  constructor(backend: GivenBackend, options: LockServiceOptions = {}) {
    assertServiceOptions(options);
    this.backend = runOutsideLocks(() => openBackend(backend));
    this.keyPrefix = keyPrefixOf(options);
    this.#parts = createServiceParts(this.backend, options);
  }

  /** Health of the backend, as far as this process knows without a request. */
  get health(): BackendHealth {
    return this.backend.health.current;
  }

  /** Returns the locks that this process holds through this service. */
  inspect(): LockSnapshot[] {
    return describeHolds(this.#parts);
  }

  /**
   * Resolves to the holders and waiters of `key` on the server.
   * @throws LockConfigurationError the backend cannot read the holders; LockBackendError
   */
  async look(key: string): Promise<KeyState> {
    assertKey(key);
    return { key, ...(await readKeyState(this.#parts.service, this.keyPrefix + key)) };
  }

  /**
   * Takes `key` from all its holders, or from `owner` alone. A holder is told at once or with its next renewal,
   * depending on the backend. The next holder has a greater token. Resolves to the first evicted holder, or to
   * `undefined`.
   * @throws as `look` does
   */
  async evict(key: string, owner?: string): Promise<KeyHolder | undefined> {
    assertKey(key);
    return evictHolders(this.#parts, this.keyPrefix + key, owner);
  }

  /** Lists the keys that any process holds, page by page from the server, in any order. @throws as `look` does */
  keys(): AsyncIterableIterator<string> {
    return listKeys(this.#parts.service, this.keyPrefix);
  }

  /** Adds an observer of all events, until the returned function is called. */
  observe(observer: LockObserver): () => void {
    return this.#parts.service.observers.addObserver(observer);
  }

  /**
   * Returns a stream of the events from now on, for `for await`, until its signal, the reader's `break`, or the end of
   * the service. A slow reader delays nothing and misses old events, see `dropped`. @throws LockConfigurationError
   */
  events(options?: EventStreamOptions): LockEventStream {
    return this.#parts.service.observers.createStream(options);
  }

  /**
   * Returns `options` with all defaults, checked and frozen. Calls that get this result do not check it again.
   * @throws LockConfigurationError the backend does not support the options
   */
  resolve(options?: AcquireOptions): Readonly<ResolvedOptions> {
    return this.#parts.locker.resolve(options);
  }

  /**
   * Waits for the key, at most `waitMs`. The caller has to release the lock, best by `await using`.
   * @throws LockTimeoutError the key is held; LockBackendError the backend does not answer; LockDeadlockError this call
   * tree has the key and `reentrant` is false; LockLostError this call tree has lost the key; LockShutdownError the
   * service is stopped; `options.signal.reason`. Remains of the request on the server are released in the background.
   */
  acquire(key: string, options?: AcquireOptions): Promise<LockHandle> {
    return this.#parts.locker.acquire(key, options);
  }

  /**
   * Makes one attempt, with at most one round trip to the backend. Resolves to `null` when the key is held.
   * @throws LockBackendError the backend does not answer; LockLostError this call tree has lost the key
   */
  tryAcquire(key: string, options?: TryAcquireOptions): Promise<LockHandle | null> {
    return this.#parts.locker.tryAcquire(key, options);
  }

  /**
   * Runs `work` under the lock, and always releases the lock. An error of `work` reaches the caller unchanged.
   * @throws as `acquire` does; LockLostError when the lock ended before `work` did, whose result is then discarded
   */
  withLock<T>(key: string, work: (lock: LockHandle) => Promise<T> | T, options?: AcquireOptions): Promise<T> {
    return this.#parts.locker.withLock(key, work, options);
  }

  /**
   * Runs `work` as `withLock` does if the key is free, and resolves to `undefined` if it is held. For a job of a
   * `SchedulerRegistry`: `tryWithLock('nightly', job, oncePer(DAY_MS))`.
   * @throws as `tryAcquire` does; LockLostError as `withLock` does
   */
  tryWithLock<T>(
    key: string,
    work: (lock: LockHandle) => Promise<T> | T,
    options: TryAcquireOptions & { onBusy?: 'skip' } = {},
  ): Promise<T | undefined> {
    return this.#parts.locker.tryWithLock(key, work, options);
  }

  /**
   * Takes over a lock that a process has passed on by `LockHandle.transfer`, with a greater fencing token.
   * @throws LockLostError the ticket was used before, or its time is over; LockConfigurationError the ticket is not for
   * this backend and namespace; LockBackendError no answer within `waitMs`; LockShutdownError
   */
  adopt(ticket: string, options?: AdoptOptions): Promise<LockHandle> {
    return this.#parts.locker.adopt(ticket, options);
  }

  /**
   * Takes all of `keys` or none, and waits at most `waitMs` altogether. Callers that take all their keys by this method
   * never deadlock. A key that comes twice is taken once, with the stronger claim. The caller has to release the set,
   * best by `await using`.
   * @throws as `acquire` does; LockLostError a lock was lost during the wait for another; LockConfigurationError for no
   * keys, and for a key with two claims of which neither covers the other
   */
  acquireAll(keys: readonly WantedKey[], options?: AcquireOptions): Promise<LockSet> {
    return this.#parts.severalKeys.acquireAll(keys, options);
  }

  /** Runs `work` under the locks of all `keys`, see `acquireAll`, and releases them. @throws as `withLock` does */
  withLocks<T>(
    keys: readonly WantedKey[],
    work: (locks: LockSet) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    return this.#parts.severalKeys.withLocks(keys, work, options);
  }

  /**
   * Makes this process a candidate for the leadership `key`, until the `Leadership` is closed or the service ends. One
   * process at a time leads and runs `work`. After the work that process is a candidate again, behind the others.
   * @throws LockConfigurationError, also when this service is a candidate for `key` already; LockShutdownError
   */
  lead(key: string, work: LeaderWork, options?: LeadOptions): Leadership {
    return this.#parts.leaderships.beginCandidacy(key, work, options);
  }

  /** Returns this service's candidacy for `key`, for health pages. */
  leadership(key: string): Leadership | undefined {
    return this.#parts.leaderships.get(key);
  }

  /**
   * Resolves to whether the lock with this `sequencer()` is still held, by at most one reading of the backend. With
   * `wanted.key` only a sequencer of that key is valid. A valid lock may be lost right afterwards: compare fencing
   * tokens where you write, if you can.
   * @throws LockBackendError the backend does not answer
   */
  checkSequencer(text: string, wanted: { readonly key?: string } = {}): Promise<SequencerState> {
    return withKeepAlive(() => checkSequencer(text, wanted, this.keyPrefix, this.#parts.service));
  }

  /**
   * Has the backend check its settings on the server, as the module does at its start. A server that cannot be reached
   * is reported to observers and in `health`. @throws LockConfigurationError
   */
  start(): Promise<void> {
    const onFailure = (error: unknown): void => void this.#parts.service.observers.notifyFailure('', 'start', error);
    return withKeepAlive(() => runOutsideLocks(() => this.backend.start(onFailure, this.#parts.service.clock)));
  }

  /** Rejects all waiters and all later acquisitions with `LockShutdownError`. Held locks stay held. Idempotent. */
  stop(): void {
    this.#parts.serviceEnd.stop();
  }

  /**
   * @internal Begins the grace time in which a server finishes its requests, and limits all later waits to that time.
   * Then new callers are refused, and holds from before this call end as by `shutdown`. Later holds get the same time.
   */
  beginGraceTime(ms?: number): void {
    this.#parts.serviceEnd.beginGraceTime(ms);
  }

  /**
   * Refuses new callers with `LockShutdownError`. Resolves to true when no lock is held or waited for, and to false
   * after `graceMs`. Until then waiters get their turn, and a call tree that holds a lock may take others.
   */
  drain(graceMs?: number): Promise<boolean> {
    return withKeepAlive(() => this.#parts.serviceEnd.drain(graceMs));
  }

  /**
   * Drains, then closes the backend. Work that has not ended within `graceMs` loses its lock with the reason
   * `shutdown`. Its key becomes free only when the work ends, or with its TTL. A second call can only shorten the grace
   * time.
   */
  shutdown(graceMs?: number): Promise<void> {
    return withKeepAlive(() => this.#parts.serviceEnd.shutdown(graceMs));
  }

  /**
   * Stops at once, for a caller that knows that no work runs under a lock. Leaders end first, see `lead`. All other
   * holders lose their locks with the reason `shutdown`. The releases have `withinMs`, 5 s by default, and the close of
   * the backend as long again; the TTL ends leases that remain. During a `shutdown` this is `shutdown(0)`. Idempotent.
   */
  close(withinMs?: number): Promise<void> {
    return withKeepAlive(() => this.#parts.serviceEnd.close(withinMs));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

Object.defineProperty(LockService.prototype, SERVICE_BRAND, { value: true });
