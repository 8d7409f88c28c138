import { Blockers } from './blockers.js';
import { Busy } from './busy.js';
import { CallOff } from './call-off.js';
import { Deadline } from './deadline.js';
import { LockBackendError, LockError, type LossReason, quote } from './errors.js';
import { handOffLimits } from './hand-off-limits.js';
import { Hold, type HoldKeeper } from './hold.js';
import type { Call, HoldsSettings, LinePlace } from './holds-settings.js';
import { LeaseReturns } from './lease-returns.js';
import { isAlike, LocalQueue } from './local-queue.js';
import type { BackendHealth, Holder, Lease } from './lock-backend.js';
import type { ResolvedOptions } from './lock-options.js';
import { newOwner } from './process-identity.js';
import { outside } from './reentrancy.js';
import { TimerGrid } from './timer-grid.js';
import { Watchdog } from './watchdog.js';

const DONE = Promise.resolve();

/**
 * The holds of one service, from the caller's turn to the lease given back: who is next here, when a lease passes from one
 * caller to the next, and what a loss sets in motion.
 */
export class Holds {
  readonly keeper: HoldKeeper;
  readonly #settings: HoldsSettings;
  readonly #grid: TimerGrid;
  readonly #queue = new LocalQueue<Hold | LinePlace>();
  readonly #holds = new Map<string, Hold>();
  readonly #blockers = new Blockers();
  /** Keys that this process has had for as long as it may: its next caller lets others ask first. */
  readonly #yielding = new Set<string>();
  readonly #returns: LeaseReturns;
  /** Those that a shutdown ended while their work still ran. */
  readonly #abandoned = new Set<Hold>();
  /** Calls off the requests of those who ask the backend now. */
  readonly #asking = new CallOff();

  constructor(settings: HoldsSettings) {
    this.#settings = settings;
    this.#grid = TimerGrid.of(settings.clock);
    const { backend, clock, observers } = settings;
    const failed = (key: string, error: unknown): void => void this.#reported(key, 'release', error);
    this.#returns = new LeaseReturns({ ...settings, failed });
    this.keeper = {
      backend,
      clock,
      jeopardy: (hold, cause) => observers.notify('jeopardy', () => ({ ...hold.observed, cause })),
      safe: (hold) => observers.notify('safe', () => hold.observed),
      lost: (hold, reason) => this.#onLost(hold, reason),
    };
  }

  [Symbol.iterator](): Iterator<Hold> {
    return this.#holds.values();
  }

  /** How many callers of this process wait for the key. */
  waiting(key: string): number {
    return this.#queue.waiting(key);
  }

  /** Waits for our turn in this process, then inherits the lease of the caller before us or asks the backend. */
  take(key: string, options: ResolvedOptions): Promise<Hold | Busy> {
    const { clock } = this.#settings;
    const since = clock.now();
    const call = { key, options, deadline: Deadline.after(options.waitMs, clock, since), since };
    return outside(() => (this.#queue.enter(key) ? this.#ask(call) : this.#takeInTurn(call)));
  }

  /** A handle left. The last one of a hold passes the lease to the next caller here, or gives it back. Never rejects. */
  readonly giveUp = (hold: Hold): Promise<void> => {
    const { key } = hold;
    if (!hold.leave()) {
      if (!hold.ended || !this.#abandoned.delete(hold)) return DONE;
      this.#holds.delete(key);
      return outside(() => this.#giveBack(hold));
    }
    const { clock, observers } = this.#settings;
    this.#holds.delete(key);
    observers.notify('released', () => ({
      key,
      fencingToken: hold.fencingToken,
      heldMs: clock.now() - hold.since,
    }));
    if (!this.#mayHandOver(hold)) return outside(() => this.#giveBack(hold));
    this.#endTurn(key, hold);
    return DONE;
  };

  /** Sends away all who wait, in this process and at the backend. */
  dismiss(reason: unknown): void {
    this.#queue.rejectAll(reason);
    this.#asking.now(reason);
  }

  /** Whether anybody holds a lock, or waits for one. */
  get busy(): boolean {
    return this.#queue.busy;
  }

  /** Resolves when nobody holds a lock, or waits for one. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  /** Ends every hold, and resolves when all is given back. */
  async end(): Promise<void> {
    for (const hold of this) hold.onLost('shutdown');
    await this.#returns.underWay.idle();
  }

  /**
   * Ends every hold and leaves its key to the TTL, because the work under it still runs. A key is given back when its work ends
   * in time. Returns the longest of these TTLs.
   */
  abandon(): number {
    let leftMs = 0;
    for (const hold of this) {
      leftMs = Math.max(leftMs, hold.watchdog.leftMs + hold.options.lockDelayMs);
      this.#abandoned.add(hold);
      hold.onLost('shutdown');
    }
    return leftMs;
  }

  onHealthChange({ status, detail }: BackendHealth): void {
    for (const { watchdog, options } of this) {
      // Without renewals nothing is asked that could fail, and nothing would ever be answered to end the doubt.
      if (!options.watchdog) continue;
      if (status === 'down') watchdog.suspect(new Error(detail ?? 'the connection is down'));
      else if (status === 'up') watchdog.renewNow();
    }
  }

  failure(key: string, operation: string, cause: unknown): LockError {
    if (cause instanceof LockError) return cause;
    return new LockBackendError(key, { backend: this.#settings.backend.name, operation, cause });
  }

  async #takeInTurn(call: Call): Promise<Hold | Busy> {
    const { key, options } = call;
    const previous = await this.#waitForTurn(call);
    if (previous instanceof Busy) return previous;
    if (previous === 'late') return this.#late(key);
    if (previous && 'owner' in previous) return this.#ask(call, previous);
    const inherited = this.#inherit(previous, options);
    return inherited ? this.#begin(inherited, call) : this.#ask(call);
  }

  #waitForTurn({ key, options, deadline }: Call): Promise<Hold | LinePlace | null | 'late'> | Busy {
    const waitersHere = this.#queue.waiting(key);
    if (options.waitMs === 0) return this.#late(key);
    if (waitersHere >= this.#settings.maxWaiters) {
      return new Busy(
        this.#holderOf(key),
        `${waitersHere} callers of this process already wait for ${quote(key)} (maxWaiters)`,
      );
    }
    this.#settings.observers.notify('waiting', () => ({ key, waitersHere: waitersHere + 1 }));
    return this.#queue.wait(key, options, deadline);
  }

  /** The hold that goes on with the lease of the caller before us, if that one is still good. */
  #inherit(previous: Hold | null, options: ResolvedOptions): Hold | undefined {
    if (!previous) return undefined;
    const { key, tenure, handOff } = previous;
    if (tenure.watchdog.trusted) return new Hold(key, options, this.keeper, tenure, handOff + 1);
    void this.#returns.giveBack(previous);
    return undefined;
  }

  /** Asks the backend. Unless it gives us a hold, our turn is over. @param left by the caller before us */
  async #ask(call: Call, left?: LinePlace): Promise<Hold | Busy> {
    const { key, options, deadline } = call;
    const { owner } = left ?? { owner: newOwner() };
    const { backend, metadata, stopped } = this.#settings;
    const { ttlMs, lockDelayMs } = options;
    const signal = stopped.aborted ? stopped : this.#asking.signal(options.signal);
    let hold: Hold | undefined;
    let passed = false;
    const pass = (): boolean => (passed ||= this.#passPlace(call, owner));
    this.#returns.underWay.begin();
    try {
      const lease = await backend.acquire(key, {
        owner,
        ttlMs: ttlMs + lockDelayMs,
        lockDelayMs,
        deadline,
        signal,
        metadata,
        yields: this.#yielding.delete(key),
        place: { inherited: left !== undefined, pass },
        blockedBy: (by) => this.#blockers.see(key, by),
      });
      if (lease) hold = this.#holdOf(lease, owner, call);
    } catch (error) {
      const calledOff = signal.aborted && error === signal.reason;
      const failure: unknown = calledOff ? error : this.#reported(key, 'acquire', error);
      if (!passed && failure instanceof LockBackendError) this.#onFailure(failure, call);
      else if (!passed) this.#endTurn(key, null);
      throw failure;
    } finally {
      this.#returns.underWay.end();
    }
    if (hold) return this.#begin(hold, call);
    const busy = new Busy(this.#holderOf(key));
    if (!passed) this.#endTurn(key, null);
    return busy;
  }

  /** Has the next caller here go on in our place: order of arrival is that of the processes' callers, not of who asks for them. */
  #passPlace({ key, options }: Call, owner: string): boolean {
    return isAlike(this.#queue.next(key), options) && this.#queue.leave(key, { owner });
  }

  #holdOf(lease: Lease, owner: string, { key, options }: Call): Hold {
    const [{ clock, handOffs }, { lockDelayMs }] = [this.#settings, options];
    if (lockDelayMs > 0) this.#returns.assertUsable(lease, lockDelayMs);
    const watchdog = new Watchdog(lease, options.watchdog, clock, this.#grid, lockDelayMs);
    const tenure = { owner, watchdog, since: clock.now(), limits: handOffLimits(handOffs, lease) };
    return new Hold(key, options, this.keeper, tenure);
  }

  /** Unless the caller has given up meanwhile, or the service. */
  #begin(hold: Hold, { key, options: { signal }, since }: Call): Hold | Promise<never> {
    const { clock, observers, stopped } = this.#settings;
    this.#holds.set(key, hold);
    if (signal?.aborted === true) return this.#rejected(hold, signal.reason);
    if (stopped.aborted) return this.#rejected(hold, stopped.reason);
    observers.notify('acquired', () => ({
      key,
      fencingToken: hold.fencingToken,
      waitedMs: clock.now() - since,
      from: hold.handOff === 0 ? 'backend' : 'hand-off',
    }));
    return hold;
  }

  async #rejected(hold: Hold, reason: unknown): Promise<never> {
    await this.giveUp(hold);
    throw reason;
  }

  #reported(key: string, operation: string, cause: unknown): LockError {
    const error = this.failure(key, operation, cause);
    this.#settings.observers.notify('backendFailed', () => ({ key, operation, error }));
    return error;
  }

  #mayHandOver(hold: Hold): boolean {
    const { key, options } = hold;
    const next = this.#queue.next(key);
    const fits = isAlike(next, options) && next?.watchdog === true && options.watchdog;
    if (!fits || !hold.mayHandOver) return false;
    if (hold.exhausted) this.#yielding.add(key);
    return !hold.exhausted;
  }

  /**
   * Unless it was our time that was too short, whoever waits here is told the same: to have it of the backend each of them would
   * need as long again, one after the other, and most of them would be told that somebody has the key.
   */
  #onFailure(failure: LockBackendError, { key, deadline }: Call): void {
    if (!deadline.passed) this.#queue.reject(key, failure);
    const hasNext = this.#queue.waiting(key) > 0;
    this.#endTurn(key, null);
    if (hasNext) this.#blockers.see(key, failure);
  }

  #endTurn(key: string, gift: Hold | null): void {
    this.#blockers.forget(key);
    if (!this.#queue.leave(key, gift)) this.#yielding.delete(key);
  }

  /** The time of one is up who could not ask the backend. */
  #late(key: string): Busy {
    const failure = this.#holds.has(key) ? undefined : this.#blockers.failure(key);
    if (failure) throw this.#reported(key, 'acquire', failure);
    return new Busy(this.#holderOf(key));
  }

  async #giveBack(hold: Hold): Promise<void> {
    await this.#returns.giveBack(hold);
    this.#endTurn(hold.key, null);
  }

  #onLost(hold: Hold, reason: LossReason): void {
    const { key } = hold;
    this.#holds.delete(key);
    this.#settings.observers.notify('lost', () => ({ ...hold.observed, reason }));
    if (this.#abandoned.has(hold)) return void hold.watchdog.stop();
    void (hold.options.lockDelayMs > 0 ? this.#returns.giveBackLater(hold) : this.#returns.giveBack(hold));
    this.#endTurn(key, null);
  }

  #holderOf(key: string): Holder | undefined {
    return this.#holds.has(key) ? this.#settings.metadata : this.#blockers.holder(key);
  }
}
