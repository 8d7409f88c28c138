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
import { evict, keysOf, look } from './looking/readings.js';
import { snapshotsOf } from './looking/snapshots.js';
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
 * Takes and gives back locks of one backend. Works without Nest: `new LockService(redis({ url }))`. Owns its backend,
 * the one that it opened by a factory as well as a live one that it was given: `close()` closes both.
 */
export class LockService implements AsyncDisposable {
  readonly backend: LockBackend;
  /** The namespace and a colon, or nothing: keys begin with it on the server, in events and in `inspect()`. */
  readonly keyPrefix: string;
  readonly #parts: ServiceParts;

  /** @throws LockConfigurationError */
  constructor(given: GivenBackend, options: LockServiceOptions = {}) {
    assertServiceOptions(options);
    this.backend = runOutsideLocks(() => openBackend(given));
    this.keyPrefix = keyPrefixOf(options);
    this.#parts = createServiceParts(this.backend, options);
  }

  /** Whether the backend can be reached, as far as this process knows without asking. */
  get health(): BackendHealth {
    return this.backend.health.current;
  }

  /** The locks that this process holds through this service. */
  inspect(): LockSnapshot[] {
    const { holds, turns, service, leaderships } = this.#parts;
    return snapshotsOf(holds, turns, service.clock, (key) => leaderships.hold(key));
  }

  /** Who has `key` on the server, and who waits. @throws LockConfigurationError it cannot tell; LockBackendError */
  async look(key: string): Promise<KeyState> {
    assertKey(key);
    return { key, ...(await look(this.#parts.service, this.keyPrefix + key)) };
  }

  /**
   * Takes `key` from all who have it, or from `owner` alone, whom the next renewal tells. The next one's token is greater.
   * Resolves to the first of those. `undefined`: nobody, or another one by now. @throws as `look` does
   */
  async evict(key: string, owner?: string): Promise<KeyHolder | undefined> {
    assertKey(key);
    return evict(this.#parts.service, this.keyPrefix + key, owner);
  }

  /** The keys that any process holds, page by page from the server, in any order. @throws as `look` does */
  keys(): AsyncIterableIterator<string> {
    return keysOf(this.#parts.service, this.keyPrefix);
  }

  /** Tells `observer` all events from now on. What it returns ends that. */
  observe(observer: LockObserver): () => void {
    return this.#parts.service.observers.add(observer);
  }

  /**
   * The events from now on, for `for await`: ends with its signal, the reader's `break`, or the service. A reader that is
   * too slow holds nothing up and misses the oldest ones, see `limit` and `dropped`. @throws LockConfigurationError
   */
  events(options?: EventStreamOptions): LockEventStream {
    return this.#parts.service.observers.stream(options);
  }

  /**
   * The options that a call with these would use, without a question to the backend. A call that is given the result,
   * which nobody can change, need not work it out again. @throws LockConfigurationError no such call can ever work here
   */
  resolve(options?: AcquireOptions): Readonly<ResolvedOptions> {
    return this.#parts.locker.resolve(options);
  }

  /**
   * Waits for the key, at most `waitMs`. Whoever calls this releases the handle, best by `await using`.
   * @throws LockTimeoutError somebody else has it; LockBackendError the backend does not answer; LockDeadlockError this
   * call tree has it and `reentrant` is false; LockLostError this call tree had it; LockShutdownError the service is
   * stopped; `options.signal.reason`. Nothing stays behind.
   */
  acquire(key: string, options?: AcquireOptions): Promise<LockHandle> {
    return this.#parts.locker.acquire(key, options);
  }

  /**
   * Never waits for somebody else: `null` means that the key is held. One round trip to the backend, or none.
   * @throws LockBackendError the backend does not answer; LockLostError this call tree had it
   */
  tryAcquire(key: string, options?: TryAcquireOptions): Promise<LockHandle | null> {
    return this.#parts.locker.tryAcquire(key, options);
  }

  /**
   * Runs `work` under the lock and gives it back whatever happens. An error of `work` reaches the caller untouched.
   * @throws what `acquire` throws; LockLostError when the lock ended before `work` did: what it returned is then
   * discarded
   */
  withLock<T>(key: string, work: (lock: LockHandle) => Promise<T> | T, options?: AcquireOptions): Promise<T> {
    return this.#parts.locker.withLock(key, work, options);
  }

  /**
   * Runs `work` as `withLock` does where the key is free, and resolves to `undefined` where somebody has it. For a job of
   * a `SchedulerRegistry`: `tryWithLock('nightly', job, oncePer(DAY_MS))`.
   * @throws what `tryAcquire` throws; LockLostError as `withLock` does
   */
  tryWithLock<T>(
    key: string,
    work: (lock: LockHandle) => Promise<T> | T,
    options: TryAcquireOptions & { onBusy?: 'skip' } = {},
  ): Promise<T | undefined> {
    return this.#parts.locker.tryWithLock(key, work, options);
  }

  /**
   * All of `keys` or none, waiting at most `waitMs` altogether. Callers who all take their keys like this never wait for
   * each other in a circle, whatever they want of each. A key that comes twice is taken once, with the stronger claim.
   * Whoever calls this releases the set, best by `await using`.
   * @throws as `acquire` does; LockLostError one was lost while the caller waited for another; LockConfigurationError for
   * no keys at all, and for a key with two claims neither of which covers the other. Nothing stays behind.
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
   * Stands for the office `key` until the leadership is closed, or the service ends: one process at a time runs `work`.
   * When that has ended, for whatever reason, this one stands again, behind the others.
   * @throws LockConfigurationError, also when this service stands for `key` already; LockShutdownError
   */
  lead(key: string, work: LeaderWork, options?: LeadOptions): Leadership {
    return this.#parts.leaderships.stand(key, work, options);
  }

  /** The one that this service stands with, for health pages. */
  leadership(key: string): Leadership | undefined {
    return this.#parts.leaderships.get(key);
  }

  /**
   * Whether a lock that was shown to us by its `sequencer()` is still held, by one reading of the backend; for
   * `unknown` by none. With `key` only a sequencer of that key will do, and with one that is no string none. What is
   * valid may be lost the moment after: compare fencing tokens where you write, if you can.
   * @throws LockBackendError the backend does not answer
   */
  checkSequencer(text: string, wanted: { readonly key?: string } = {}): Promise<SequencerState> {
    return whileAwaited(() => checkSequencer(text, wanted, this.keyPrefix, this.#parts.service));
  }

  /**
   * Has the backend look for what can never work, as the module does at its start. That it cannot be reached is nothing
   * of that kind: observers hear of it, and `health` shows it. @throws LockConfigurationError
   */
  start(): Promise<void> {
    const onFailure = (error: unknown): void => void this.#parts.service.observers.notifyFailure('', 'start', error);
    return whileAwaited(() => runOutsideLocks(() => startBackend(this.backend, onFailure)));
  }

  /** Refuses all acquisitions and sends waiters away, with `LockShutdownError`. What is held stays held. Idempotent. */
  stop(): void {
    this.#parts.end.stop();
  }

  /**
   * @internal The grace time begins, and a server finishes its requests meanwhile. From now on nobody waits longer than
   * this. Then newcomers are refused, and who has held a lock since before this call is told, as by `shutdown`; who got
   * one meanwhile has as long.
   */
  limitWaits(ms?: number): void {
    this.#parts.end.limitWaits(ms);
  }

  /**
   * Refuses newcomers with `LockShutdownError`. Resolves to true when nobody holds a lock, or waits for one, and to
   * false when `graceMs` end first. Until then those who wait get their turn, and a call tree that holds a lock may
   * take others.
   */
  drain(graceMs?: number): Promise<boolean> {
    return whileAwaited(() => this.#parts.end.drain(graceMs));
  }

  /**
   * Drains; then closes the backend. Work that has not ended within `graceMs` is told that its lock is lost
   * (`shutdown`). Its key is not given back under it: the key frees itself when the work ends, or with its TTL. Called
   * again, a grace time that ends earlier counts, and a later one changes nothing.
   */
  shutdown(graceMs?: number): Promise<void> {
    return whileAwaited(() => this.#parts.end.shutdown(graceMs));
  }

  /**
   * Stops at once, for whoever knows that no work runs under a lock. Tells those who still hold one that it is lost
   * (`shutdown`), gives it back, and closes the backend. A server has `withinMs` to answer, 5 s by default, and the
   * backend as long again; the TTL ends what is left undone. During a `shutdown` it is `shutdown(0)`: holders are told
   * now, and their keys are not given back under their work. Leaders end first, see `lead`. Idempotent.
   */
  close(withinMs?: number): Promise<void> {
    return whileAwaited(() => this.#parts.end.close(withinMs));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

Object.defineProperty(LockService.prototype, BRAND, { value: true });

/** Whether `value` is a `LockService`, also one of another copy of this package. */
export function isLockService(value: unknown): value is LockService {
  return typeof value === 'object' && value !== null && BRAND in value;
}
