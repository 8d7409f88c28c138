import type { EventStreamOptions, LockEventStream } from './events/lock-event-stream.js';
import type { LockObserver, LockSnapshot } from './events/lock-observer.js';
import type { BackendHealth } from './contract/health.js';
import { assertKey } from './contract/key.js';
import type { KeyHolder, KeyState } from './contract/key-state.js';
import { runOutsideLocks } from './holding/call-tree.js';
import type { LockHandle } from './holding/lock-handle.js';
import type { SequencerState } from './holding/sequencer.js';
import { checkSequencer } from './holding/sequencer-check.js';
import { whileAwaited } from './kit/awaited-promises.js';
import type { LeaderWork, LeadOptions } from './leading/lead-options.js';
import type { Leadership } from './leading/leadership.js';
import { LockBackend } from './leasing/lock-backend.js';
import { type GivenBackend, openBackend, startBackend } from './leasing/open-backend.js';
import { evictHolders, listKeys, readKeyState } from './looking/readings.js';
import { describeHolds } from './looking/snapshots.js';
import {
  type AcquireOptions,
  assertServiceOptions,
  keyPrefixOf,
  type LockServiceOptions,
  type ResolvedOptions,
  type TryAcquireOptions,
} from './options/lock-options.js';
import { createServiceParts, type ServiceParts } from './service-parts.js';
import type { LockSet } from './several/lock-set.js';
import type { WantedKey } from './several/wanted-keys.js';

const BRAND = Symbol.for('nestjs-distributed-lock/service');

/**
 * Takes and releases locks of one backend. Works without Nest: `new LockService(redis({ url }))`. It owns its backend, also
 * a live one that it was given: `close()` closes it.
 */
export class LockService implements AsyncDisposable {
  readonly backend: LockBackend;
  /** Namespace with a colon, or an empty text. Keys begin with it on the server, in events and in `inspect()`. */
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
    const { holds, turns, service, leaderships } = this.#parts;
    return describeHolds(holds, turns, service.clock, (key) => leaderships.haveLock(key));
  }

  /**
   * Resolves to the holders of `key` on the server, and its waiters.
   * @throws LockConfigurationError the backend cannot tell; LockBackendError
   */
  async look(key: string): Promise<KeyState> {
    assertKey(key);
    return { key, ...(await readKeyState(this.#parts.service, this.keyPrefix + key)) };
  }

  /**
   * Takes `key` from all its holders, or from `owner` alone. A holder learns of it at once or with its next renewal, as the
   * backend can tell, and the next holder has a greater token. Resolves to the first evicted holder, or to `undefined` where there was none.
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

  /** Tells `observer` all events from now on, until the returned function is called. */
  observe(observer: LockObserver): () => void {
    return this.#parts.service.observers.addObserver(observer);
  }

  /**
   * Returns a stream of the events from now on, for `for await`. It ends with its signal, the reader's `break`, or the
   * service. A slow reader holds nothing up and misses the oldest events, see `limit` and `dropped`.
   * @throws LockConfigurationError
   */
  events(options?: EventStreamOptions): LockEventStream {
    return this.#parts.service.observers.createStream(options);
  }

  /**
   * Returns all options that a call with these would have, frozen. A call that is given the result need not resolve them
   * again. @throws LockConfigurationError no such call can ever work here
   */
  resolve(options?: AcquireOptions): Readonly<ResolvedOptions> {
    return this.#parts.locker.resolve(options);
  }

  /**
   * Waits for the key, at most `waitMs`. The caller has to release the lock, best by `await using`.
   * @throws LockTimeoutError the key is held; LockBackendError the backend does not answer; LockDeadlockError this call
   * tree has the key and `reentrant` is false; LockLostError this call tree has lost it; LockShutdownError the service is
   * stopped; `options.signal.reason`. Nothing stays behind.
   */
  acquire(key: string, options?: AcquireOptions): Promise<LockHandle> {
    return this.#parts.locker.acquire(key, options);
  }

  /**
   * Makes one attempt: `null` means that the key is held. One round trip to the backend, or none.
   * @throws LockBackendError the backend does not answer; LockLostError this call tree has lost the key
   */
  tryAcquire(key: string, options?: TryAcquireOptions): Promise<LockHandle | null> {
    return this.#parts.locker.tryAcquire(key, options);
  }

  /**
   * Runs `work` under the lock and releases it whatever happens. An error of `work` reaches the caller untouched.
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
   * Takes all of `keys` or none, and waits at most `waitMs` altogether. Callers who all take their keys like this never wait
   * for each other in a circle. A key that comes twice is taken once, with the stronger claim. The caller has to release
   * the set, best by `await using`.
   * @throws as `acquire` does; LockLostError one was lost during the wait for another; LockConfigurationError for no keys,
   * and for a key with two claims of which neither covers the other. Nothing stays behind.
   */
  acquireAll(keys: readonly WantedKey[], options?: AcquireOptions): Promise<LockSet> {
    return this.#parts.several.acquireAll(keys, options);
  }

  /** Runs `work` under the locks of all `keys`, see `acquireAll`, and releases them. @throws as `withLock` does */
  withLocks<T>(
    keys: readonly WantedKey[],
    work: (locks: LockSet) => Promise<T> | T,
    options?: AcquireOptions,
  ): Promise<T> {
    return this.#parts.several.withLocks(keys, work, options);
  }

  /**
   * Stands for the leadership `key` until it is closed, or the service ends: one process at a time runs `work`. When the
   * work has ended, for whatever reason, this process stands again, behind the others.
   * @throws LockConfigurationError, also when this service stands for `key` already; LockShutdownError
   */
  lead(key: string, work: LeaderWork, options?: LeadOptions): Leadership {
    return this.#parts.leaderships.beginCandidacy(key, work, options);
  }

  /** Returns this service's candidacy for `key`, for health pages. */
  leadership(key: string): Leadership | undefined {
    return this.#parts.leaderships.get(key);
  }

  /**
   * Resolves to whether the lock with this `sequencer()` is still held, by one reading of the backend, or by none for
   * `unknown`. With `key` only a sequencer of that key is valid, and with a `key` that is no string none. A valid lock may
   * be lost the moment after: compare fencing tokens where you write, if you can.
   * @throws LockBackendError the backend does not answer
   */
  checkSequencer(text: string, wanted: { readonly key?: string } = {}): Promise<SequencerState> {
    return whileAwaited(() => checkSequencer(text, wanted, this.keyPrefix, this.#parts.service));
  }

  /**
   * Has the backend look for what can never work, as the module does at its start. If it cannot be reached, observers hear
   * of it and `health` shows it. @throws LockConfigurationError
   */
  start(): Promise<void> {
    const onFailure = (error: unknown): void => void this.#parts.service.observers.notifyFailure('', 'start', error);
    return whileAwaited(() => runOutsideLocks(() => startBackend(this.backend, onFailure)));
  }

  /** Refuses all acquisitions and sends waiters away, with `LockShutdownError`. Held locks stay held. Idempotent. */
  stop(): void {
    this.#parts.end.stop();
  }

  /**
   * @internal Begins the grace time, in which a server finishes its requests. From now on no caller waits longer. After it
   * newcomers are refused, and holders from before this call are told, as by `shutdown`; later holders have as long.
   */
  limitWaits(ms?: number): void {
    this.#parts.end.limitWaits(ms);
  }

  /**
   * Refuses newcomers with `LockShutdownError`. Resolves to true when no lock is held or waited for, and to false when
   * `graceMs` end first. Until then waiters get their turn, and a call tree that holds a lock may take others.
   */
  drain(graceMs?: number): Promise<boolean> {
    return whileAwaited(() => this.#parts.end.drain(graceMs));
  }

  /**
   * Drains, then closes the backend. Work that has not ended within `graceMs` is told that its lock is lost (`shutdown`).
   * Its key is not released under it: the key becomes free when the work ends, or with its TTL. In a second call an earlier
   * end of the grace time counts.
   */
  shutdown(graceMs?: number): Promise<void> {
    return whileAwaited(() => this.#parts.end.shutdown(graceMs));
  }

  /**
   * Stops at once, for a caller that knows that no work runs under a lock. Tells remaining holders that their locks are lost
   * (`shutdown`), releases these, and closes the backend. A server has `withinMs` to answer, 5 s by default, and the backend
   * as long again; the TTL ends what remains. During a `shutdown` this is `shutdown(0)`: holders are told now, and their
   * keys are not released under their work. Leaders end first, see `lead`. Idempotent.
   */
  close(withinMs?: number): Promise<void> {
    return whileAwaited(() => this.#parts.end.close(withinMs));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

Object.defineProperty(LockService.prototype, BRAND, { value: true });

/** Returns whether `value` is a `LockService`, also one of another copy of this package. */
export function isLockService(value: unknown): value is LockService {
  return typeof value === 'object' && value !== null && BRAND in value;
}
