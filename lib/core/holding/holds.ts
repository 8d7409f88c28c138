import { shareProperty } from '../contract/claim.js';
import type { KeyHolder } from '../contract/key-state.js';
import type { LeaseWatch } from '../contract/lease-store.js';
import type { LossReason } from '../contract/errors.js';
import type { Lease } from '../leasing/lease.js';
import type { HandOffOptions } from '../options/hand-off-options.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import { TimerWheel } from '../time/timer-wheel.js';
import { isExhausted } from '../turns/hand-off-limits.js';
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

/** Turns of a service's callers. Each caller may give the next one its hold, or its entry in the server's queue. */
export type HoldTurns = Turns<Hold | InheritedQueueEntry>;

const DONE = Promise.resolve();

/** Holds of one service, from a lease to its hand-over, its release or its loss. */
export class Holds {
  readonly #listener: HoldListener;
  readonly #joinable: JoinableHolds;
  readonly #releases: LeaseReleases;
  readonly #wheel: TimerWheel;
  readonly #byId = new Map<string, Hold>();
  /** Holds that a shutdown has given up while the work under them goes on. The next caller waits until that work ends. */
  readonly #abandoned = new Set<Hold>();
  readonly #leaseWatch: LeaseWatch | undefined;
  /** Age at which a hold is abandoned. It is limited once a shutdown has begun. */
  #maxAgeMs = Infinity;

  constructor(
    private readonly service: ServiceContext,
    private readonly turns: HoldTurns,
    private readonly handOffLimits: HandOffOptions,
  ) {
    const { clock, observers } = service;
    this.#wheel = TimerWheel.of(clock);
    this.#releases = new LeaseReleases(service);
    this.#joinable = new JoinableHolds(handOffLimits);
    this.#leaseWatch = watchLeases(service, this);
    this.#listener = {
      service,
      jeopardy: (hold, cause) => observers.notify('jeopardy', () => ({ ...hold.observedState, cause })),
      safe: (hold) => observers.notify('safe', () => hold.observedState),
      lost: (hold, reason) => this.#onLost(hold, reason),
    };
  }

  [Symbol.iterator](): Iterator<Hold> {
    return this.#byId.values();
  }

  /** Returns the hold with this id. An exclusive hold has its key for an id. */
  get(id: string): Hold | undefined {
    return this.#byId.get(id);
  }

  /** Begins the hold of a lease that the backend has just granted. Waiters who may share the key join it. */
  begin(key: string, options: ResolvedOptions, lease: Lease): Hold {
    const { clock } = this.service;
    const isWatched = this.#leaseWatch?.isActive === true && slotOf(key, options) === key;
    const watchdog = new Watchdog(lease, options.watchdog, clock, this.#wheel, isWatched);
    const hold = new Hold(key, options, this.#listener, watchdog);
    if (hold.isShared) {
      this.#joinable.offer(hold);
      this.turns.share(hold.slot, (waiter) => this.#joinable.tryJoin(hold, waiter), hold);
    }
    return this.#add(hold);
  }

  /** Begins the hold that goes on with the previous caller's lease. `undefined`: that lease is no longer trusted. */
  inherit(previous: Hold, options: ResolvedOptions): Hold | undefined {
    const { key, watchdog, handOff } = previous;
    if (watchdog.isTrusted) return this.#add(new Hold(key, options, this.#listener, watchdog, handOff + 1));
    void this.#releases.release(previous);
    return undefined;
  }

  /** Returns the hold that the caller has joined, if another caller of this process shares the key. */
  join(slot: string, options: ResolvedOptions): Hold | undefined {
    return this.#joinable.join(slot, options);
  }

  /** Ends one handle's part of a hold. The last one passes the lease to the next caller, or releases it. Never rejects. */
  readonly release = (hold: Hold): Promise<void> => {
    if (!hold.leave()) return hold.hasEnded && this.#abandoned.has(hold) ? this.#endAbandoned(hold) : DONE;
    const { clock, observers } = this.service;
    this.#forget(hold);
    observers.notify('released', () => ({
      key: hold.key,
      fencingToken: hold.fencingToken,
      heldMs: clock.now() - hold.since,
      ...shareProperty(hold.claim),
    }));
    return this.#passOnOrRelease(hold);
  };

  /** Releases a hold that its caller never got: observers hear nothing of it. Never rejects. */
  drop(hold: Hold): Promise<void> {
    if (!hold.leave()) return DONE;
    this.#forget(hold);
    return this.#passOnOrRelease(hold, 0);
  }

  /** Ends the holds of this service whose leases were evicted. */
  revoke(evicted: readonly KeyHolder[]): void {
    if (evicted.length === 0) return;
    const owners = new Set(evicted.map(({ owner }) => owner));
    for (const { watchdog } of this) if (owners.has(watchdog.lease.owner)) watchdog.revoke();
  }

  /** Ends every hold but those whose key is spared, and resolves when their leases are released. */
  async end(isSpared: (key: string) => boolean): Promise<void> {
    for (const hold of this) {
      if (isSpared(hold.key)) continue;
      hold.onLost('shutdown');
      if (this.#abandoned.has(hold)) void this.#endAbandoned(hold);
    }
    await this.service.underWay.idle();
    this.#leaseWatch?.end?.();
  }

  /** Abandons each hold that begins from now on when it reaches this age. */
  limitAge(maxAgeMs: number): void {
    this.#maxAgeMs = maxAgeMs;
  }

  /**
   * Abandons every hold that began at `begunBy` or before, because the work under it still runs. Its key becomes free when
   * that work ends, or with its TTL. Returns the longest time until such a key is free, earlier abandoned holds included.
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

  #add(hold: Hold): Hold {
    this.#byId.set(hold.id, hold);
    if (this.#maxAgeMs !== Infinity) {
      this.service.clock.schedule(this.#maxAgeMs, () => this.#abandon(hold), { background: true });
    }
    return hold;
  }

  #forget(hold: Hold): void {
    this.#byId.delete(hold.id);
    if (hold.isShared) this.#joinable.withdraw(hold);
  }

  #passOnOrRelease(hold: Hold, closedMs = hold.closedMs): Promise<void> {
    if (!this.#mayPass(hold)) return runOutsideLocks(() => this.#release(hold, closedMs));
    this.turns.pass(hold.slot, hold);
    return DONE;
  }

  /** Returns whether the next caller of this process may go on with the lease. */
  #mayPass(hold: Hold): boolean {
    const { slot, options, watchdog, handOff } = hold;
    if (hold.isShared) return false;
    const next = this.turns.nextOptions(slot);
    const fits =
      haveSameRequest(next, options) && next?.watchdog === true && options.watchdog && options.minHoldMs === 0;
    if (!fits || !hold.canBePassedOn) return false;
    if (!isExhausted(this.handOffLimits, watchdog.lease, handOff, this.service.clock.now() - watchdog.since))
      return true;
    this.turns.markToYield(slot);
    return false;
  }

  #release(hold: Hold, closedMs = hold.closedMs): Promise<void> {
    const endTurn = (): void => this.#endTurn(hold);
    if (closedMs > 0) return this.#releases.keepClosed(hold, closedMs, endTurn);
    const { store } = this.service.backend;
    const endsTurnEarly = !hold.options.awaitRelease && store.traits?.keepsOrder === true;
    return this.#releases.release(hold, endTurn, endsTurnEarly);
  }

  #endTurn({ isShared, slot }: Hold): void {
    if (isShared) this.turns.endShared(slot);
    else this.turns.end(slot);
  }

  #abandon(hold: Hold): void {
    if (this.#byId.get(hold.id) !== hold) return;
    this.#abandoned.add(hold);
    hold.onLost('shutdown');
  }

  #endAbandoned(hold: Hold): Promise<void> {
    this.#abandoned.delete(hold);
    this.#forget(hold);
    return runOutsideLocks(() => this.#release(hold));
  }

  #onLost(hold: Hold, reason: LossReason): void {
    const isAbandoned = this.#abandoned.has(hold);
    if (!isAbandoned) this.#forget(hold);
    this.service.observers.notify('lost', () => ({ ...hold.observedState, reason }));
    if (isAbandoned) return void hold.watchdog.stop();
    const { closedMs, options } = hold;
    if (closedMs > 0) void this.#releases.keepClosed(hold, Math.max(closedMs, options.lockDelayMs));
    else void (options.lockDelayMs > 0 ? this.#releases.releaseLater(hold) : this.#releases.release(hold));
    this.#endTurn(hold);
  }
}
