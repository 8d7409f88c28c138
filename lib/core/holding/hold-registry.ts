import { Blockers, KeyHeld } from '../waiting/blockers.js';
import { Deadline } from '../time/deadline.js';
import { LockBackendError, type LossReason } from '../contract/errors.js';
import { type HandOffOptions, isExhausted } from '../waiting/hand-off-limits.js';
import { Hold, type HoldListener } from './hold.js';
import { LockBackend } from '../leasing/lock-backend.js';
import type { LockSnapshot } from '../events/lock-observer.js';
import type { Observers } from '../events/observers.js';
import type { OrderWatch } from '../ordering/order-watch.js';
import type { Clock } from '../time/timers.js';
import { LeaseReleases } from './lease-releases.js';
import { isAlike, type LeftEntry, LocalQueue } from '../waiting/local-queue.js';
import type { BackendHealth } from '../contract/health.js';
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
  readonly byKey = new Map<string, Hold>();
  readonly #wheel: TimerWheel;
  /** Those whose grace time ended before their work did. They keep their turn until it ends. */
  readonly #abandoned = new Set<Hold>();
  /** For holds that begin when the grace time is over. */
  #laterGraceMs = Infinity;

  constructor(readonly settings: HoldRegistrySettings) {
    this.#wheel = TimerWheel.of(settings.clock);
    const { backend, clock, observers, stopped } = settings;
    this.releases = new LeaseReleases(clock, observers, stopped);
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
    return this.byKey.values();
  }

  inspect(leads: (key: string) => boolean): LockSnapshot[] {
    const { clock } = this.settings;
    return [...this].map(({ key, state, fencingToken, since }) => ({
      key,
      state,
      fencingToken,
      heldMs: clock.now() - since,
      waitersHere: this.queue.waiting(key),
      leads: leads(key),
    }));
  }

  /** A handle left. The last one of a hold passes the lease to the next caller, or gives it back. Never rejects. */
  readonly release = (hold: Hold): Promise<void> => {
    const { key } = hold;
    if (!hold.exit()) {
      return hold.ended && this.#abandoned.has(hold) ? this.#endAbandoned(hold) : DONE;
    }
    const { clock, observers } = this.settings;
    this.byKey.delete(key);
    observers.notify('released', () => ({ key, fencingToken: hold.fencingToken, heldMs: clock.now() - hold.since }));
    return this.#passOn(hold);
  };

  /** As `release`, for a hold that its caller never had: observers hear nothing of it. */
  drop(hold: Hold): Promise<void> {
    this.byKey.delete(hold.key);
    return hold.exit() ? this.#passOn(hold, 0) : DONE;
  }

  /** Ends a turn with something for the next caller, who must be there. Until he has it, it counts as under way. */
  handOn(key: string, handed: Hold | LeftEntry): void {
    this.releases.underWay.begin();
    this.blockers.forget(key);
    this.queue.endTurn(key, handed);
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

  /**
   * Ends every hold and leaves its key to the TTL, because the work under it still runs. A key is given back when its
   * work ends in time. Returns the longest of these TTLs, with those of holds that were abandoned before.
   * @param laterGraceMs after which a hold that begins from now on is abandoned, too
   */
  abandon(laterGraceMs = Infinity): number {
    this.#laterGraceMs = laterGraceMs;
    let leftMs = 0;
    for (const hold of this) {
      leftMs = Math.max(leftMs, hold.watchdog.leftMs + hold.options.lockDelayMs);
      this.#abandon(hold);
    }
    return leftMs;
  }

  onHealthChange(health: BackendHealth): void {
    this.settings.observers.notify('healthChanged', () => health);
    const { status, detail } = health;
    for (const { watchdog, options } of this) {
      // Without renewals nothing is asked that could fail, and nothing would ever be answered to end the doubt.
      if (!options.watchdog) continue;
      if (status === 'down') watchdog.suspect(new Error(detail ?? 'the connection is down'));
      else if (status === 'up') watchdog.renewNow();
    }
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
    this.byKey.set(hold.key, hold);
    if (this.#laterGraceMs === Infinity) return;
    this.settings.clock.schedule(this.#laterGraceMs, () => this.#abandon(hold), { background: true });
  }

  #mayHandOver(hold: Hold): boolean {
    const { key, options, watchdog, handOff } = hold;
    const next = this.queue.next(key);
    const fits = isAlike(next, options) && next?.watchdog === true && options.watchdog && options.minHoldMs === 0;
    if (!fits || !hold.mayHandOver) return false;
    const { clock, handOffs } = this.settings;
    if (!isExhausted(handOffs, watchdog.lease, handOff, clock.now() - watchdog.since)) return true;
    this.yielding.add(key);
    return false;
  }

  /**
   * Ends the turn of a caller that the backend failed. Unless it was our time that was too short, whoever waits here is
   * told the same: each would need as long again, one after the other, and most would be told that somebody has the
   * key.
   */
  onFailure(key: string, failure: unknown, deadline: Deadline): void {
    if (!(failure instanceof LockBackendError)) return this.endTurn(key);
    if (!deadline.passed) this.queue.reject(key, failure);
    const hasNext = this.queue.waiting(key) > 0;
    this.endTurn(key);
    if (hasNext) this.blockers.see(key, failure);
  }

  endTurn(key: string): void {
    this.blockers.forget(key);
    if (!this.queue.endTurn(key, null)) this.yielding.delete(key);
  }

  /** The time of one is up who could not ask the backend. */
  late(key: string): KeyHeld {
    const failure = this.byKey.has(key) ? undefined : this.blockers.failure(key);
    if (failure) throw this.settings.observers.notifyFailure(key, 'acquire', failure);
    return new KeyHeld(this.holderOf(key));
  }

  #passOn(hold: Hold, closedMs = hold.closedMs): Promise<void> {
    if (!this.#mayHandOver(hold)) return outside(() => this.#release(hold, closedMs));
    this.handOn(hold.key, hold);
    return DONE;
  }

  #release(hold: Hold, closedMs = hold.closedMs): Promise<void> {
    if (closedMs > 0) return this.releases.keep(hold, closedMs, () => this.endTurn(hold.key));
    const early = !hold.options.awaitRelease && this.settings.backend.store.keepsOrder === true;
    return this.releases.release(hold, () => this.endTurn(hold.key), early);
  }

  #abandon(hold: Hold): void {
    if (this.byKey.get(hold.key) !== hold) return;
    this.#abandoned.add(hold);
    hold.onLost('shutdown');
  }

  #endAbandoned(hold: Hold): Promise<void> {
    this.#abandoned.delete(hold);
    this.byKey.delete(hold.key);
    return outside(() => this.#release(hold));
  }

  #onLost(hold: Hold, reason: LossReason): void {
    const { key } = hold;
    const isAbandoned = this.#abandoned.has(hold);
    if (!isAbandoned) this.byKey.delete(key);
    this.settings.observers.notify('lost', () => ({ ...hold.observed, reason }));
    if (isAbandoned) return void hold.watchdog.stop();
    const { closedMs, options } = hold;
    if (closedMs > 0) void this.releases.keep(hold, Math.max(closedMs, options.lockDelayMs));
    else void (options.lockDelayMs > 0 ? this.releases.releaseLater(hold) : this.releases.release(hold));
    this.endTurn(key);
  }

  holderOf(key: string): Holder | undefined {
    return this.byKey.has(key) ? this.settings.metadata : this.blockers.holder(key);
  }
}
