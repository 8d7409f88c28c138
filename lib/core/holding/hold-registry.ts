import { shown } from '../contract/claim.js';
import { Blockers } from '../waiting/blockers.js';
import { Deadline } from '../time/deadline.js';
import { isLockError, type LossReason } from '../contract/errors.js';
import { type HandOffOptions, isExhausted } from '../waiting/hand-off-limits.js';
import { Hold, type HoldListener } from './hold.js';
import { LockBackend } from '../leasing/lock-backend.js';
import type { Observers } from '../events/observers.js';
import type { OrderWatch } from '../ordering/order-watch.js';
import type { Clock } from '../time/timers.js';
import { JoinableHolds } from './joinable-holds.js';
import { LeaseReleases } from './lease-releases.js';
import { isAlike, type LeftEntry, LocalQueue } from '../waiting/local-queue.js';
import type { Holder, HolderMetadata } from '../contract/holder.js';
import type { Lease } from '../leasing/lease.js';
import type { ResolvedOptions } from '../lock-options.js';
import { untrustedMs } from '../option-resolver.js';
import { outside } from './call-tree.js';
import { TimerWheel } from '../time/timer-wheel.js';
import { Watchdog } from './watchdog.js';

export interface HoldRegistrySettings {
  readonly backend: LockBackend;
  readonly clock: Clock;
  readonly observers: Observers;
  readonly metadata: HolderMetadata;
  readonly handOffs: HandOffOptions;
  readonly maxWaiters: number;
  readonly orderWatch: OrderWatch | undefined;
  /** Aborts when nobody may get a lock any more. */
  readonly stopped: AbortSignal;
}

const DONE = Promise.resolve();

/**
 * The holds of one service: whose turn each key is, and when a lease passes from one caller to the next. Releases
 * leases, and acts on losses. An `Acquisition` makes the holds.
 */
export class HoldRegistry {
  readonly listener: HoldListener;
  readonly queue = new LocalQueue<Hold | LeftEntry>();
  readonly blockers = new Blockers();
  /** Keys that this process has had for as long as it may: its next caller lets others ask first. */
  readonly yielding = new Set<string>();
  readonly releases: LeaseReleases;
  readonly joinable: JoinableHolds;
  /** By `Hold.id`. */
  readonly byId = new Map<string, Hold>();
  readonly #wheel: TimerWheel;
  /** Those whose grace time ended before their work did. They keep their turn until it ends. */
  readonly #abandoned = new Set<Hold>();
  /** For holds that begin when the end of the service has begun. */
  #laterGraceMs = Infinity;

  constructor(readonly settings: HoldRegistrySettings) {
    this.#wheel = TimerWheel.of(settings.clock);
    const { backend, clock, observers, stopped } = settings;
    this.releases = new LeaseReleases(clock, observers, stopped);
    this.joinable = new JoinableHolds(settings.handOffs);
    this.listener = {
      backend,
      clock,
      tracers: observers.tracers,
      jeopardy: (hold, cause) => observers.notify('jeopardy', () => ({ ...hold.observed, cause })),
      safe: (hold) => observers.notify('safe', () => hold.observed),
      lost: (hold, reason) => this.#onLost(hold, reason),
    };
  }

  [Symbol.iterator](): Iterator<Hold> {
    return this.byId.values();
  }

  /** A handle left. The last one of a hold passes the lease to the next caller, or gives it back. Never rejects. */
  readonly release = (hold: Hold): Promise<void> => {
    const { key } = hold;
    if (!hold.exit()) {
      return hold.ended && this.#abandoned.has(hold) ? this.#endAbandoned(hold) : DONE;
    }
    const { clock, observers } = this.settings;
    this.#forget(hold);
    observers.notify('released', () => ({
      key,
      fencingToken: hold.fencingToken,
      heldMs: clock.now() - hold.since,
      ...shown(hold.claim),
    }));
    return this.#passOn(hold);
  };

  /** As `release`, for a hold that its caller never had: observers hear nothing of it. */
  drop(hold: Hold): Promise<void> {
    if (!hold.exit()) return DONE;
    this.#forget(hold);
    return this.#passOn(hold, 0);
  }

  /** Ends a turn with something for the next caller, who must be there. Until he has it, it counts as under way. */
  handOn(slot: string, handed: Hold | LeftEntry): void {
    this.releases.underWay.begin();
    this.blockers.forget(slot);
    this.queue.endTurn(slot, handed);
  }

  /** Those who wait here to share the key with a new hold join it. Others may ask the backend. */
  share(hold: Hold): void {
    const { slot } = hold;
    this.blockers.forget(slot);
    this.joinable.offer(hold);
    const joins = (options: ResolvedOptions): boolean => this.joinable.joins(hold, options);
    this.queue.share(slot, joins, () => {
      this.releases.underWay.begin();
      return hold;
    });
  }

  /** Sends away all who wait, in this process and at the backend. */
  dismiss(reason: unknown): void {
    this.queue.rejectAll(reason);
    this.settings.backend.dismiss(reason);
  }

  /** Ends every hold that is not `spared`, by its key, and resolves when these are given back. */
  async end(spared: (key: string) => boolean): Promise<void> {
    for (const hold of this) {
      if (spared(hold.key)) continue;
      hold.onLost('shutdown');
      if (this.#abandoned.has(hold)) void this.#endAbandoned(hold);
    }
    await this.releases.underWay.idle();
  }

  /** Has each hold that begins from now on be abandoned when it is as old as this. */
  limitHolds(graceMs: number): void {
    this.#laterGraceMs = graceMs;
  }

  /**
   * Ends every hold that began by a time and leaves its key to the TTL, because the work under it still runs. A key is
   * given back when its work ends in time. Returns the longest of these TTLs, with those of holds that were abandoned
   * before.
   */
  abandon(begunBy = Infinity): number {
    let leftMs = 0;
    for (const hold of this) {
      if (hold.since > begunBy) continue;
      leftMs = Math.max(leftMs, hold.watchdog.leftMs + hold.options.lockDelayMs);
      this.#abandon(hold);
    }
    return leftMs;
  }

  /** The hold of a lease that the backend has just granted. */
  holdOf(key: string, options: ResolvedOptions, lease: Lease): Hold {
    const { backend, clock } = this.settings;
    const delayMs = untrustedMs(options, backend.store);
    const watchdog = new Watchdog(lease, options.watchdog, clock, this.#wheel, delayMs);
    return new Hold(key, options, this.listener, watchdog);
  }

  /** The hold that goes on with the lease of the caller before, if that one is still good. */
  inherit(previous: Hold, options: ResolvedOptions): Hold | undefined {
    const { key, watchdog, handOff } = previous;
    if (watchdog.trusted) return new Hold(key, options, this.listener, watchdog, handOff + 1);
    void this.releases.release(previous);
    return undefined;
  }

  add(hold: Hold): void {
    this.byId.set(hold.id, hold);
    if (this.#laterGraceMs === Infinity) return;
    this.settings.clock.schedule(this.#laterGraceMs, () => this.#abandon(hold), { background: true });
  }

  #mayHandOver(hold: Hold): boolean {
    const { slot, options, watchdog, handOff } = hold;
    if (hold.isShared) return false;
    const next = this.queue.next(slot);
    const fits = isAlike(next, options) && next?.watchdog === true && options.watchdog && options.minHoldMs === 0;
    if (!fits || !hold.mayHandOver) return false;
    const { clock, handOffs } = this.settings;
    if (!isExhausted(handOffs, watchdog.lease, handOff, clock.now() - watchdog.since)) return true;
    this.yielding.add(slot);
    return false;
  }

  /**
   * Ends the turn of a caller that the backend failed. Unless it was our time that was too short, whoever waits here is
   * told the same: each would need as long again, one after the other, and most would be told that somebody has the
   * key.
   */
  onFailure(slot: string, failure: unknown, deadline: Deadline): void {
    if (!isLockError(failure, 'LOCK_BACKEND')) return this.endTurn(slot);
    if (!deadline.passed) this.queue.reject(slot, failure);
    const hasNext = this.queue.waiting(slot) > 0;
    this.endTurn(slot);
    if (hasNext) this.blockers.see(slot, failure);
  }

  endTurn(slot: string): void {
    this.blockers.forget(slot);
    if (!this.queue.endTurn(slot, null)) this.yielding.delete(slot);
  }

  #forget(hold: Hold): void {
    this.byId.delete(hold.id);
    if (hold.isShared) this.joinable.withdraw(hold);
  }

  #endTurnOf(hold: Hold): void {
    if (hold.isShared) this.queue.endShared(hold.slot);
    else this.endTurn(hold.slot);
  }

  #passOn(hold: Hold, closedMs = hold.closedMs): Promise<void> {
    if (!this.#mayHandOver(hold)) return outside(() => this.#release(hold, closedMs));
    this.handOn(hold.slot, hold);
    return DONE;
  }

  #release(hold: Hold, closedMs = hold.closedMs): Promise<void> {
    if (closedMs > 0) return this.releases.keep(hold, closedMs, () => this.#endTurnOf(hold));
    const early = !hold.options.awaitRelease && this.settings.backend.store.keepsOrder === true;
    return this.releases.release(hold, () => this.#endTurnOf(hold), early);
  }

  #abandon(hold: Hold): void {
    if (this.byId.get(hold.id) !== hold) return;
    this.#abandoned.add(hold);
    hold.onLost('shutdown');
  }

  #endAbandoned(hold: Hold): Promise<void> {
    this.#abandoned.delete(hold);
    this.#forget(hold);
    return outside(() => this.#release(hold));
  }

  #onLost(hold: Hold, reason: LossReason): void {
    const isAbandoned = this.#abandoned.has(hold);
    if (!isAbandoned) this.#forget(hold);
    this.settings.observers.notify('lost', () => ({ ...hold.observed, reason }));
    if (isAbandoned) return void hold.watchdog.stop();
    const { closedMs, options } = hold;
    if (closedMs > 0) void this.releases.keep(hold, Math.max(closedMs, options.lockDelayMs));
    else void (options.lockDelayMs > 0 ? this.releases.releaseLater(hold) : this.releases.release(hold));
    this.#endTurnOf(hold);
  }

  holderOf(slot: string): Holder | undefined {
    return this.byId.has(slot) ? this.settings.metadata : this.blockers.holder(slot);
  }
}
