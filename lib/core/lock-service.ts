import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { Deadline } from './deadline.js';
import { LockBackendError, LockDeadlockError, LockError, LockTimeoutError, type LossReason } from './errors.js';
import { Hold, type HoldKeeper } from './hold.js';
import { assertKey } from './key.js';
import { LocalQueue } from './local-queue.js';
import type { BackendHealth, Holder, HolderMetadata, Lease, LockBackend } from './lock-backend.js';
import { LockHandle } from './lock-handle.js';
import { Observers } from './lock-observer.js';
import {
  type AcquireOptions,
  assertServiceOptions,
  type LockServiceOptions,
  type ResolvedOptions,
  resolveOptions,
  type TryAcquireOptions,
} from './lock-options.js';
import { currentLocks, findHold } from './reentrancy.js';
import { type Clock, systemClock, TimerGrid } from './timers.js';
import { Watchdog } from './watchdog.js';

/** Why there is no hold: somebody else's, as far as we know whose. */
class Busy {
  constructor(
    readonly holder?: Holder,
    readonly message?: string,
  ) {}
}

/** What a lock service is doing, for inspectors and health pages. */
export interface LockSnapshot {
  readonly key: string;
  readonly state: 'held' | 'jeopardy' | 'lost';
  readonly fencingToken: bigint;
  readonly heldMs: number;
  /** Callers of this process who wait for the key. */
  readonly waitersHere: number;
}

/**
 * Takes and gives back locks of one backend. Works without Nest: `new LockService(redis({ url }))`. Owns the backend it was
 * given: `close()` closes both.
 */
export class LockService implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #grid: TimerGrid;
  /** What a call assumes that does not say. */
  readonly defaults: Readonly<ResolvedOptions>;
  readonly #observers: Observers;
  readonly #metadata: HolderMetadata;
  readonly #prefix: string;
  readonly #maxHandOffs: number;
  readonly #maxHandOffMs: number;
  readonly #maxWaiters: number;
  readonly #queue = new LocalQueue<Hold>();
  readonly #holds = new Map<string, Hold>();
  /** Who was seen in the way of the caller that has a key's turn. */
  readonly #blockers = new Map<string, Holder>();
  /** Keys that this process has had for as long as it may: its next caller lets others ask first. */
  readonly #yielding = new Set<string>();
  readonly #background = new Set<Promise<void>>();
  readonly #stopped = new AbortController();
  readonly #keeper: HoldKeeper;
  readonly #unsubscribe: () => void;
  #closed: Promise<void> | undefined;

  /** @throws LockConfigurationError */
  constructor(
    readonly backend: LockBackend,
    options: LockServiceOptions = {},
  ) {
    assertServiceOptions(options);
    this.#clock = options.clock ?? systemClock;
    this.#grid = new TimerGrid(this.#clock);
    this.defaults = resolveOptions(options.defaults);
    this.#observers = new Observers(options.observers ?? []);
    const label = options.label === undefined ? {} : { label: options.label };
    this.#metadata = { host: hostname(), pid: process.pid, ...label };
    this.#prefix = options.namespace === undefined ? '' : `${options.namespace}:`;
    this.#maxHandOffs = options.maxHandOffs ?? 1_023;
    this.#maxHandOffMs = options.maxHandOffMs ?? 100;
    this.#maxWaiters = options.maxWaiters ?? 100_000;
    this.#keeper = {
      clock: this.#clock,
      jeopardy: ({ key, fencingToken }, cause) => this.#observers.notify('jeopardy', { key, fencingToken, cause }),
      safe: ({ key, fencingToken }) => this.#observers.notify('safe', { key, fencingToken }),
      lost: (hold, reason) => this.#onLost(hold, reason),
    };
    // Everyone who asks the backend listens to it: many are no leak.
    setMaxListeners(0, this.#stopped.signal);
    this.#unsubscribe = backend.onHealthChange?.((health) => this.#onHealthChange(health)) ?? (() => undefined);
  }

  /** Whether the backend can be reached, as far as this process knows without asking. */
  get health(): BackendHealth {
    return this.backend.health?.() ?? { status: 'idle' };
  }

  /** The locks that this process holds through this service. */
  inspect(): LockSnapshot[] {
    return [...this.#holds.values()].map(({ key, state, fencingToken, since }) => ({
      key,
      state,
      fencingToken,
      heldMs: this.#clock.now() - since,
      waitersHere: this.#queue.waiting(key),
    }));
  }

  /**
   * Waits for the key, at most `waitMs`. Whoever calls this releases the handle, best by `await using`.
   * @throws LockTimeoutError somebody else has it; LockBackendError the backend does not answer; LockDeadlockError this call
   * tree has it and `reentrant` is false; LockLostError this call tree had it; `options.signal.reason`. Nothing stays behind.
   */
  async acquire(key: string, options?: AcquireOptions): Promise<LockHandle> {
    const resolved = resolveOptions(options, this.defaults);
    const taken = await this.#take(key, resolved);
    if (taken instanceof LockHandle) return taken;
    const { waitMs } = resolved;
    this.#observers.notify('timedOut', { key, waitMs, holder: taken.holder });
    throw new LockTimeoutError(key, {
      waitMs,
      holder: taken.holder,
      ...(taken.message === undefined ? {} : { message: taken.message }),
    });
  }

  /**
   * Never waits for somebody else: `null` means that the key is held. One round trip to the backend, or none.
   * @throws LockBackendError the backend does not answer; LockLostError this call tree had it
   */
  async tryAcquire(key: string, options?: TryAcquireOptions): Promise<LockHandle | null> {
    const resolved = { ...resolveOptions(options, this.defaults), waitMs: 0 };
    const taken = await this.#take(key, resolved);
    return taken instanceof LockHandle ? taken : null;
  }

  /**
   * Runs `work` under the lock and gives it back whatever happens. An error of `work` reaches the caller untouched.
   * @throws what `acquire` throws; LockLostError when the lock ended before `work` did: what it returned is then discarded
   */
  async withLock<T>(key: string, work: (lock: LockHandle) => Promise<T> | T, options?: AcquireOptions): Promise<T> {
    const lock = await this.acquire(key, options);
    try {
      const result = await lock.run(() => work(lock));
      lock.throwIfLost();
      await lock.complete();
      return result;
    } finally {
      await lock.release();
    }
  }

  /** Refuses new acquisitions and sends waiters away, with `LockBackendError`. What is held stays held. Idempotent. */
  stop(): void {
    if (this.#stopped.signal.aborted) return;
    const reason = this.#failure(
      '',
      'acquire',
      new Error('the lock service was stopped: the application is shutting down'),
    );
    this.#stopped.abort(reason);
    this.#queue.rejectAll(reason);
  }

  /**
   * Stops; tells those who still hold a lock that it is lost (`shutdown`) and gives it back; closes the backend. Whatever a
   * server that does not answer leaves undone within `withinMs`, and the backend in as long again, ends with its TTL. Idempotent.
   */
  close(withinMs = 5_000): Promise<void> {
    this.#closed ??= this.#close(withinMs);
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(withinMs: number): Promise<void> {
    this.stop();
    for (const hold of this.#holds.values()) hold.onLost('shutdown');
    await this.#within(withinMs, Promise.all(this.#background));
    this.#unsubscribe();
    await this.#within(withinMs, this.backend.close());
  }

  async #take(key: string, options: ResolvedOptions): Promise<LockHandle | Busy> {
    assertKey(key);
    options.signal?.throwIfAborted();
    const fullKey = this.#prefix + key;
    const inner = findHold(this.#keeper, fullKey);
    if (inner && this.#reenter(inner, options)) return this.#handle(key, inner);
    if (inner) return new Busy(this.#metadata);
    this.#stopped.signal.throwIfAborted();

    const since = this.#clock.now();
    const deadline = Deadline.after(options.waitMs, this.#clock);
    const previous = this.#queue.enter(fullKey) ? null : await this.#waitForTurn(fullKey, options, deadline);
    if (previous instanceof Busy) return previous;
    const hold = this.#inherit(previous, options) ?? (await this.#ask(fullKey, options, deadline));
    if (hold instanceof Busy) return hold;

    this.#holds.set(fullKey, hold);
    if (options.signal?.aborted === true || this.#stopped.signal.aborted) {
      await this.#giveUp(hold);
      throw options.signal?.aborted === true ? options.signal.reason : this.#stopped.signal.reason;
    }
    const from = hold.handOff === 0 ? 'backend' : 'hand-off';
    const { fencingToken } = hold;
    this.#observers.notify('acquired', { key: fullKey, fencingToken, waitedMs: this.#clock.now() - since, from });
    return this.#handle(key, hold);
  }

  #handle(key: string, hold: Hold): LockHandle {
    return new LockHandle(key, hold, this.#giveUp);
  }

  /** False: the key is held by this very call tree, which asked not to re-enter and not to wait. */
  #reenter(hold: Hold, options: ResolvedOptions): boolean {
    if (!hold.isHeld) throw hold.lossError();
    if (options.reentrant && hold.options.reentrant) {
      hold.enter();
      const { key, fencingToken } = hold;
      this.#observers.notify('acquired', { key, fencingToken, waitedMs: 0, from: 're-entry' });
      return true;
    }
    if (options.waitMs === 0) return false;
    throw new LockDeadlockError(
      currentLocks().map((lock) => lock.key),
      hold.key,
    );
  }

  async #waitForTurn(key: string, options: ResolvedOptions, deadline: Deadline): Promise<Hold | Busy | null> {
    const waitersHere = this.#queue.waiting(key);
    if (deadline.passed) return new Busy(this.#holderOf(key));
    if (waitersHere >= this.#maxWaiters) {
      return new Busy(
        this.#holderOf(key),
        `${waitersHere} callers of this process already wait for "${key}" (maxWaiters)`,
      );
    }
    this.#observers.notify('waiting', { key, waitersHere: waitersHere + 1 });
    const turn = await this.#queue.wait(key, options, deadline);
    return turn === 'late' ? new Busy(this.#holderOf(key)) : turn;
  }

  /** The hold that goes on with the lease of the caller before us, if that one is still good. */
  #inherit(previous: Hold | null, options: ResolvedOptions): Hold | undefined {
    if (!previous) return undefined;
    if (previous.watchdog.trusted) return new Hold(previous.key, options, previous.watchdog, this.#keeper, previous);
    this.#inBackground(this.#giveBack(previous));
    return undefined;
  }

  /** Asks the backend. Unless it gives us a hold, our turn is over. */
  async #ask(key: string, options: ResolvedOptions, deadline: Deadline): Promise<Hold | Busy> {
    try {
      const lease = await this.#lease(key, options, deadline);
      if (lease)
        return new Hold(key, options, new Watchdog(lease, options.watchdog, this.#clock, this.#grid), this.#keeper);
      const busy = new Busy(this.#holderOf(key));
      this.#endTurn(key, null);
      return busy;
    } catch (error) {
      this.#endTurn(key, null);
      throw error;
    }
  }

  async #lease(key: string, options: ResolvedOptions, deadline: Deadline): Promise<Lease | null> {
    const stopped = this.#stopped.signal;
    const signal = options.signal ? AbortSignal.any([options.signal, stopped]) : stopped;
    const blockedBy = (holder: Holder): void => void this.#blockers.set(key, holder);
    const { ttlMs } = options;
    try {
      return await this.backend.acquire(key, {
        owner: randomUUID(),
        ttlMs,
        deadline,
        signal,
        metadata: this.#metadata,
        yields: this.#yielding.delete(key),
        blockedBy,
      });
    } catch (error) {
      if (signal.aborted && error === signal.reason) throw error;
      const failure = this.#failure(key, 'acquire', error);
      this.#observers.notify('backendFailed', { key, operation: 'acquire', error: failure });
      throw failure;
    }
  }

  /** A handle left. The last one of a hold passes the lease to the next caller here, or gives it back. */
  readonly #giveUp = async (hold: Hold): Promise<void> => {
    if (!hold.leave()) return;
    const { key, fencingToken, since } = hold;
    this.#holds.delete(key);
    this.#observers.notify('released', { key, fencingToken, heldMs: this.#clock.now() - since });
    if (this.#mayHandOver(hold)) return this.#endTurn(key, hold);
    const released = this.#giveBack(hold);
    this.#inBackground(released);
    await released;
    this.#endTurn(key, null);
  };

  #mayHandOver({ key, handOff, leaseSince, options, watchdog }: Hold): boolean {
    const next = this.#queue.next(key);
    const fits = next?.ttlMs === options.ttlMs && next.watchdog && options.watchdog;
    if (!fits || !watchdog.trusted || watchdog.inJeopardy || watchdog.lease.complete) return false;
    if (handOff < this.#maxHandOffs && this.#clock.now() - leaseSince < this.#maxHandOffMs) return true;
    this.#yielding.add(key);
    return false;
  }

  #endTurn(key: string, gift: Hold | null): void {
    this.#blockers.delete(key);
    this.#queue.leave(key, gift);
  }

  /** Never rejects, and waits at most for what is left of the TTL. */
  async #giveBack({ key, watchdog }: Hold): Promise<void> {
    try {
      await watchdog.stop();
      const { ttlMs } = watchdog.lease;
      if (!(await this.#within(ttlMs, watchdog.lease.release()))) throw new Error(`no answer within ${ttlMs} ms`);
    } catch (error) {
      const failure = this.#failure(key, 'release', error);
      this.#observers.notify('backendFailed', { key, operation: 'release', error: failure });
    }
  }

  #onLost(hold: Hold, reason: LossReason): void {
    const { key, fencingToken } = hold;
    this.#holds.delete(key);
    this.#observers.notify('lost', { key, fencingToken, reason });
    this.#inBackground(this.#giveBack(hold));
    this.#endTurn(key, null);
  }

  #onHealthChange(health: BackendHealth): void {
    this.#observers.notify('healthChanged', health);
    for (const { watchdog, options } of this.#holds.values()) {
      if (health.status === 'down') watchdog.suspect(new Error(health.detail ?? 'the connection is down'));
      else if (health.status === 'up' && options.watchdog) watchdog.renewNow();
    }
  }

  #holderOf(key: string): Holder | undefined {
    return this.#holds.has(key) ? this.#metadata : this.#blockers.get(key);
  }

  #failure(key: string, operation: string, cause: unknown): LockError {
    return cause instanceof LockError
      ? cause
      : new LockBackendError(key, { backend: this.backend.name, operation, cause });
  }

  #inBackground(task: Promise<void>): void {
    this.#background.add(task);
    void task.finally(() => this.#background.delete(task));
  }

  /** Whether `task` was over within `ms`; what becomes of it later is nobody's concern. */
  #within(ms: number, task: Promise<unknown>): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.schedule(ms, () => resolve(false));
      task.then(() => resolve(true), reject).finally(() => timer.cancel());
    });
  }
}
