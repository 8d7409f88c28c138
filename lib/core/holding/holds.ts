import { shareProperty } from '../contract/claim.js';
import type { LeaseWatch } from '../contract/lease-store.js';
import type { LossReason } from '../contract/errors.js';
import type { Lease } from '../leasing/lease.js';
import type { HandOffOptions } from '../options/hand-off-options.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { TimerWheel } from '../time/timer-wheel.js';
import { areHandOffsExhausted } from '../turns/hand-off-limits.js';
import { haveSameRequest, slotOf } from '../turns/slot.js';
import type { Turns } from '../turns/turns.js';
import { runOutsideLocks } from './call-tree.js';
import { Hold, type HoldListener } from './hold.js';
import { JoinableHolds } from './joinable-holds.js';
import { LeaseReleases } from './lease-releases.js';
import type { ServiceContext } from './service-context.js';
import { watchLeases } from './watch-leases.js';
import { Watchdog } from './watchdog.js';

/** Entry in the server's queue. A caller who gives up leaves it to the next caller of this process. */
export interface InheritedQueueEntry {
  readonly owner: string;
}

export type HoldTurns = Turns<Hold | InheritedQueueEntry>;

const RESOLVED_PROMISE = Promise.resolve();

/**
 * Holds of one service, from the grant of the lease until its hand-off, release or loss. Abandoned holds stay until
 * their work ends.
 */
export class Holds {
  readonly #listener: HoldListener;
  readonly #joinableHolds: JoinableHolds;
  readonly #releases: LeaseReleases;
  readonly #timerWheel: TimerWheel;
  readonly #holdsById = new Map<string, Hold>();
  /** Holds that a shutdown ended while their work goes on. The next caller waits until that work ends. */
  readonly #abandonedHolds = new Set<Hold>();
  readonly #leaseWatch: LeaseWatch | undefined;
  #maxAgeMs = Infinity;

  constructor(
    private readonly service: ServiceContext,
    private readonly turns: HoldTurns,
    private readonly handOffLimits: HandOffOptions,
  ) {
    const { clock, observers } = service;
    this.#timerWheel = TimerWheel.of(clock);
    this.#releases = new LeaseReleases(service);
    this.#joinableHolds = new JoinableHolds(handOffLimits);
    this.#leaseWatch = watchLeases(service, this);
    this.#listener = {
      service,
      onJeopardy: (hold, cause) => observers.notify('jeopardy', () => ({ ...hold.eventFields, cause })),
      onSafe: (hold) => observers.notify('safe', () => hold.eventFields),
      onLost: (hold, reason) => this.#onLost(hold, reason),
      onTransfer: (hold, withinMs) => this.#transfer(hold, withinMs),
    };
  }

  [Symbol.iterator](): Iterator<Hold> {
    return this.#holdsById.values();
  }

  getById(id: string): Hold | undefined {
    return this.#holdsById.get(id);
  }

  beginHold(key: string, options: ResolvedOptions, lease: Lease): Hold {
    const hold = new Hold(key, options, this.#listener, this.#createWatchdog(key, options, lease));
    if (hold.isShared) {
      this.#joinableHolds.add(hold);
      this.turns.shareTurn(hold.slot, (waiterOptions) => this.#joinableHolds.tryJoin(hold, waiterOptions), hold);
    }
    return this.#register(hold);
  }

  /** Begins a hold with an adopted lease, which is never handed off. The caller has called `Turns.takeExtraTurn`. */
  beginAdoptedHold(key: string, options: ResolvedOptions, lease: Lease, handOffCount: number): Hold {
    const watchdog = this.#createWatchdog(key, options, lease);
    return this.#register(new Hold(key, options, this.#listener, watchdog, handOffCount, true));
  }

  /** Begins a hold with the lease of `previous`. Releases an untrusted lease instead, and returns `undefined`. */
  beginHandedOffHold(previous: Hold, options: ResolvedOptions): Hold | undefined {
    const { key, watchdog, handOffCount } = previous;
    if (watchdog.isTrusted) return this.#register(new Hold(key, options, this.#listener, watchdog, handOffCount + 1));
    void this.#releases.release(previous);
    return undefined;
  }

  joinShared(slot: string, options: ResolvedOptions): Hold | undefined {
    return this.#joinableHolds.tryJoinHoldOfSlot(slot, options);
  }

  /** Hands the lease to the next caller, or releases it, once all callers of the hold have left. Never rejects. */
  readonly release = (hold: Hold): Promise<void> => {
    if (!hold.leave())
      return hold.hasEnded && this.#abandonedHolds.has(hold) ? this.#endAbandoned(hold) : RESOLVED_PROMISE;
    this.#unregisterAndNotifyReleased(hold);
    return this.#handOffOrRelease(hold);
  };

  /** Like `release`, for a caller that was cancelled before it got the lock. Sends no `released` event. */
  releaseUndelivered(hold: Hold): Promise<void> {
    if (!hold.leave()) return RESOLVED_PROMISE;
    this.#unregister(hold);
    return this.#handOffOrRelease(hold, 0);
  }

  revokeLeaseOf(owner: string): void {
    for (const { watchdog } of this) if (watchdog.lease.owner === owner) watchdog.revoke();
  }

  /**
   * Ends all holds but the spared ones as lost, with the reason `shutdown`. Resolves when the service has no pending
   * request or hand-off.
   */
  async endAll(isSpared: (key: string) => boolean): Promise<void> {
    for (const hold of this) {
      if (isSpared(hold.key)) continue;
      hold.onLost('shutdown');
      if (this.#abandonedHolds.has(hold)) void this.#endAbandoned(hold);
    }
    await this.service.pendingWork.waitUntilIdle();
  }

  endLeaseWatch(): void {
    this.#leaseWatch?.end?.();
  }

  /** Abandons each hold that begins from now on as soon as it reaches `maxAgeMs`. */
  limitAgeOfNewHolds(maxAgeMs: number): void {
    this.#maxAgeMs = maxAgeMs;
  }

  /**
   * Ends the holds that began at `latestStart` or earlier as lost, while their work still runs. Their keys become free
   * when the work ends, or with the TTL. Returns the milliseconds until the TTL has freed all these keys.
   */
  abandonAll(latestStart = Infinity): number {
    let leftMs = 0;
    for (const hold of this) {
      if (hold.acquiredAt > latestStart) continue;
      leftMs = Math.max(leftMs, hold.watchdog.leftMs + hold.options.lockDelayMs);
      this.#abandonIfPresent(hold);
    }
    return leftMs;
  }

  async #transfer(hold: Hold, withinMs: number): Promise<void> {
    if (!hold.leave()) throw hold.createLossError();
    this.#unregisterAndNotifyReleased(hold);
    await runOutsideLocks(() => this.#releases.keepForAdoption(hold, withinMs, () => this.#endTurn(hold)));
  }

  #createWatchdog(key: string, options: ResolvedOptions, lease: Lease): Watchdog {
    const isWatchedOnlyAfterRenewal = this.#leaseWatch?.needsEarlyRenewal === true && slotOf(key, options) === key;
    return new Watchdog(lease, options.watchdog, this.service.clock, this.#timerWheel, isWatchedOnlyAfterRenewal);
  }

  #register(hold: Hold): Hold {
    this.#holdsById.set(hold.id, hold);
    if (this.#maxAgeMs !== Infinity) {
      this.service.clock.schedule(this.#maxAgeMs, () => this.#abandonIfPresent(hold), { background: true });
    }
    return hold;
  }

  #unregisterAndNotifyReleased(hold: Hold): void {
    const { clock, observers } = this.service;
    this.#unregister(hold);
    observers.notify('released', () => ({
      key: hold.key,
      fencingToken: hold.fencingToken,
      heldMs: clock.now() - hold.acquiredAt,
      ...shareProperty(hold.claim),
    }));
  }

  #unregister(hold: Hold): void {
    // After the unnoticed loss of an adopted hold, as in a blocked event loop, another hold may have the same id.
    if (this.#holdsById.get(hold.id) === hold) this.#holdsById.delete(hold.id);
    if (hold.isShared) this.#joinableHolds.remove(hold);
  }

  #handOffOrRelease(hold: Hold, keepClosedMs = hold.closedAfterReleaseMs): Promise<void> {
    if (!this.#canHandOffToNext(hold)) return runOutsideLocks(() => this.#releaseOrKeepClosed(hold, keepClosedMs));
    this.turns.passTurn(hold.slot, hold);
    return RESOLVED_PROMISE;
  }

  #canHandOffToNext(hold: Hold): boolean {
    const { slot, options, watchdog, handOffCount } = hold;
    if (hold.isShared || hold.isAdopted) return false;
    const next = this.turns.getNextWaiterOptions(slot);
    const areOptionsCompatible =
      haveSameRequest(next, options) && next?.watchdog === true && options.watchdog && options.minHoldMs === 0;
    if (!areOptionsCompatible || !hold.canBeHandedOff) return false;
    if (
      !areHandOffsExhausted(
        this.handOffLimits,
        watchdog.lease,
        handOffCount,
        this.service.clock.now() - watchdog.grantedAt,
      )
    )
      return true;
    this.turns.markToYield(slot);
    return false;
  }

  #releaseOrKeepClosed(hold: Hold, keepClosedMs = hold.closedAfterReleaseMs): Promise<void> {
    const endTurn = (): void => this.#endTurn(hold);
    if (keepClosedMs > 0) return this.#releases.keepClosed(hold, keepClosedMs, endTurn);
    const { store } = this.service.backend;
    const endsTurnOnSend = !hold.options.awaitRelease && store.traits?.keepsOrder === true;
    return this.#releases.release(hold, endTurn, endsTurnOnSend);
  }

  #endTurn({ isShared, isAdopted, slot }: Hold): void {
    if (isShared || isAdopted) this.turns.endExemptTurn(slot);
    else this.turns.endTurn(slot);
  }

  #abandonIfPresent(hold: Hold): void {
    if (this.#holdsById.get(hold.id) !== hold) return;
    this.#abandonedHolds.add(hold);
    hold.onLost('shutdown');
  }

  #endAbandoned(hold: Hold): Promise<void> {
    this.#abandonedHolds.delete(hold);
    this.#unregister(hold);
    return runOutsideLocks(() => this.#releaseOrKeepClosed(hold));
  }

  #onLost(hold: Hold, reason: LossReason): void {
    const isAbandoned = this.#abandonedHolds.has(hold);
    if (!isAbandoned) this.#unregister(hold);
    this.service.observers.notify('lost', () => ({ ...hold.eventFields, reason }));
    if (isAbandoned) return void hold.watchdog.stop();
    const { closedAfterReleaseMs, options } = hold;
    if (closedAfterReleaseMs > 0)
      void this.#releases.keepClosed(hold, Math.max(closedAfterReleaseMs, options.lockDelayMs));
    else void (options.lockDelayMs > 0 ? this.#releases.releaseAfterLockDelay(hold) : this.#releases.release(hold));
    this.#endTurn(hold);
  }
}
