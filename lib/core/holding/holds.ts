import { Acquisition, type AcquisitionListener } from '../waiting/acquisition.js';
import { Blockers } from '../waiting/blockers.js';
import { Busy } from '../waiting/busy.js';
import { Deadline } from '../time/deadline.js';
import { LockBackendError, LockError, LockShutdownError, type LossReason, quote } from '../contract/errors.js';
import { handOffLimits } from '../waiting/hand-off-limits.js';
import { Hold, type HoldKeeper } from './hold.js';
import type { HoldsSettings, LinePlace } from './holds-settings.js';
import { LeaseReturns } from './lease-returns.js';
import { isAlike, LocalQueue } from '../waiting/local-queue.js';
import type { BackendHealth } from '../contract/health.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import type { Lease } from '../leasing/lease.js';
import type { ResolvedOptions } from '../lock-options.js';
import { newOwner } from './process-identity.js';
import { outside } from './reentrancy.js';
import { TimerGrid } from '../time/timer-grid.js';
import { Watchdog } from './watchdog.js';

const DONE = Promise.resolve();

/**
 * The holds of one service, from the caller's turn to the lease given back: who is next here, when a lease passes from one
 * caller to the next, and what a loss sets in motion.
 */
export class Holds implements AcquisitionListener {
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
      limitsOf: (lease) => handOffLimits(settings.handOffs, lease),
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
    const acquisition = new Acquisition(key, options, since, Deadline.after(options.waitMs, clock, since), this);
    return outside(() => (this.#queue.enter(key) ? this.#ask(acquisition) : this.#takeInTurn(acquisition)));
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
    this.#settings.backend.dismiss(reason);
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

  get metadata(): HolderMetadata {
    return this.#settings.metadata;
  }

  /** @internal Order of arrival is that of the processes' callers, not of the one that asks for them. */
  passPlace({ key, options, owner }: Acquisition): boolean {
    return isAlike(this.#queue.next(key), options) && this.#queue.leave(key, { owner });
  }

  /** @internal */
  blockedBy(key: string, by: Holder | Error | undefined): void {
    this.#blockers.see(key, by);
  }

  async #takeInTurn(acquisition: Acquisition): Promise<Hold | Busy> {
    const { key, options } = acquisition;
    const previous = await this.#waitForTurn(acquisition);
    if (previous instanceof Busy) return previous;
    if (previous === 'late') return this.#late(key);
    if (previous && 'owner' in previous) return this.#ask(acquisition, previous);
    const inherited = this.#inherit(previous, options);
    return inherited ? this.#begin(inherited, acquisition) : this.#ask(acquisition);
  }

  #waitForTurn({ key, options, deadline }: Acquisition): Promise<Hold | LinePlace | null | 'late'> | Busy {
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
  #ask(acquisition: Acquisition, left?: LinePlace): Promise<Hold | Busy> {
    const { key } = acquisition;
    const { backend, stopped } = this.#settings;
    acquisition.owner = left?.owner ?? newOwner();
    acquisition.inherited = left !== undefined;
    acquisition.yields = this.#yielding.delete(key);
    this.#returns.underWay.begin();
    const lease = stopped.aborted ? Promise.reject(stopped.reason) : backend.acquire(key, acquisition);
    return lease.then(
      (granted) => this.#onLease(granted, acquisition),
      (error: unknown) => this.#onRejected(error, acquisition),
    );
  }

  #onLease(lease: Lease | null, acquisition: Acquisition): Hold | Busy | Promise<never> {
    const { key, passed } = acquisition;
    this.#returns.underWay.end();
    if (!lease) {
      const busy = new Busy(this.#holderOf(key));
      if (!passed) this.#endTurn(key, null);
      return busy;
    }
    return this.#begin(this.#holdOf(lease, acquisition), acquisition);
  }

  #onRejected(error: unknown, { key, options: { signal }, deadline, passed }: Acquisition): never {
    this.#returns.underWay.end();
    const calledOff = (signal?.aborted === true && error === signal.reason) || error instanceof LockShutdownError;
    const failure: unknown = calledOff ? error : this.#reported(key, 'acquire', error);
    if (!passed && failure instanceof LockBackendError) this.#onFailure(failure, key, deadline);
    else if (!passed) this.#endTurn(key, null);
    throw failure;
  }

  #holdOf(lease: Lease, { key, options, owner }: Acquisition): Hold {
    const { clock } = this.#settings;
    const watchdog = new Watchdog(lease, options.watchdog, clock, this.#grid, options.lockDelayMs);
    const tenure = { owner, watchdog, since: clock.now() };
    return new Hold(key, options, this.keeper, tenure);
  }

  /** Unless the caller has given up meanwhile, or the service. */
  #begin(hold: Hold, { key, options: { signal }, since }: Acquisition): Hold | Promise<never> {
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
  #onFailure(failure: LockBackendError, key: string, deadline: Deadline): void {
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

  #giveBack(hold: Hold): Promise<void> {
    const early = !hold.options.awaitRelease && this.#settings.backend.store.keepsOrder === true;
    return this.#returns.giveBack(hold, () => this.#endTurn(hold.key, null), early);
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
