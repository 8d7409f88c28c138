import { isLockError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import { WaitGroup } from '../kit/wait-group.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import type { Deadline } from '../time/deadline.js';
import { Waiter } from './waiter.js';

/** Taken turns and waiting callers of one slot. See `slotOf` for slots. */
class SlotTurns<Handover> {
  readonly waiters = new Set<Waiter<Handover>>();
  /** Number of taken turns, at least 1: `Turns` keeps no slot without a taken turn. */
  takenCount = 1;
  /** Number of taken turns that do not count against the maximum: see `shareTurn` and `takeExtraTurn` of `Turns`. */
  exemptCount = 0;

  get firstWaiter(): Waiter<Handover> | undefined {
    return this.waiters.values().next().value;
  }
}

/**
 * Turns in which callers of this process may ask the server, by slot and in order of arrival. With turns a process
 * sends one request for a hot key, not one for each caller.
 */
export class Turns<Handover> {
  /** Slots of which a turn is taken. `undefined`: one turn is taken and no caller waits, as in most slots. */
  readonly #turnsBySlot = new Map<string, SlotTurns<Handover> | undefined>();
  readonly #takenTurns = new WaitGroup();
  /** Latest reason why callers wait: the holder of the key, or a failure of the backend. */
  readonly #obstaclesBySlot = new Map<string, Holder | Error>();
  readonly #yieldingSlots = new Set<string>();

  /** @param pendingHandovers counts handovers that the next caller has not begun to use */
  constructor(private readonly pendingHandovers: WaitGroup) {}

  get isBusy(): boolean {
    return this.#turnsBySlot.size > 0;
  }

  waitUntilIdle(): Promise<void> {
    return this.#takenTurns.waitUntilIdle();
  }

  /** @param maxTurns `Infinity` for a caller that need not queue behind the waiting ones */
  tryTakeTurn(slot: string, maxTurns: number): boolean {
    if (!this.#turnsBySlot.has(slot)) this.#turnsBySlot.set(slot, undefined);
    else {
      const turns = this.#turnsBySlot.get(slot);
      const isQueueAhead = maxTurns !== Infinity && (turns?.waiters.size ?? 0) > 0;
      if (isQueueAhead || (turns?.takenCount ?? 1) - (turns?.exemptCount ?? 0) >= maxTurns) return false;
      this.#getOrCreateTurns(slot).takenCount += 1;
    }
    this.#takenTurns.begin();
    return true;
  }

  /** Takes a turn that does not count against the maximum, to be ended by `endExemptTurn`. */
  takeExtraTurn(slot: string): void {
    if (this.#turnsBySlot.has(slot)) this.#getOrCreateTurns(slot).takenCount += 1;
    else this.#turnsBySlot.set(slot, new SlotTurns());
    this.#getOrCreateTurns(slot).exemptCount += 1;
    this.#takenTurns.begin();
  }

  countWaiters(slot: string): number {
    return this.#turnsBySlot.get(slot)?.waiters.size ?? 0;
  }

  getNextWaiterOptions(slot: string): ResolvedOptions | undefined {
    return this.#turnsBySlot.get(slot)?.firstWaiter?.options;
  }

  /**
   * Resolves to the handover of the previous caller, to `null` for a turn without one, or to `'timed-out'` at the
   * deadline. Rejects with the signal's reason. To be called after `tryTakeTurn` returned false.
   */
  waitForTurn(slot: string, options: ResolvedOptions, deadline: Deadline): Promise<Handover | null | 'timed-out'> {
    return new Promise((resolve, reject) => {
      const { waiters } = this.#getOrCreateTurns(slot);
      waiters.add(new Waiter(options, deadline, waiters, resolve, reject));
    });
  }

  /** Passes the caller's turn to the next caller, who must be waiting. */
  passTurn(slot: string, handover: Handover): void {
    this.pendingHandovers.begin();
    this.#obstaclesBySlot.delete(slot);
    this.#turnsBySlot.get(slot)?.firstWaiter?.resolve(handover);
  }

  /** Ends the caller's turn. The first waiter gets the turn without a handover. */
  endTurn(slot: string): void {
    this.#obstaclesBySlot.delete(slot);
    const turns = this.#turnsBySlot.get(slot);
    if (turns?.firstWaiter) return turns.firstWaiter.resolve(null);
    this.#yieldingSlots.delete(slot);
    if (turns && turns.takenCount > 1) turns.takenCount -= 1;
    else this.#turnsBySlot.delete(slot);
    this.#takenTurns.end();
  }

  /**
   * Ends the turn of a failed caller. Rejects all waiters if the backend failed before the caller's deadline. The
   * waiters would otherwise fail one after the other, each after a timeout of its own.
   */
  failTurn(slot: string, failure: unknown, deadline: Deadline): void {
    if (!isLockError(failure, 'LOCK_BACKEND')) return this.endTurn(slot);
    if (!deadline.passed) this.#rejectWaitersOf(slot, failure);
    const hasWaiters = this.countWaiters(slot) > 0;
    this.endTurn(slot);
    if (hasWaiters) this.recordObstacle(slot, failure);
  }

  /**
   * Passes `handover` to the first waiters, as long as they may join, and gives the next waiter a turn. The caller
   * keeps its turn, which no longer counts against the maximum.
   */
  shareTurn(slot: string, mayJoin: (options: ResolvedOptions) => boolean, handover: Handover): void {
    this.#obstaclesBySlot.delete(slot);
    const turns = this.#getOrCreateTurns(slot);
    turns.exemptCount += 1;
    while (turns.firstWaiter && mayJoin(turns.firstWaiter.options)) {
      this.pendingHandovers.begin();
      turns.firstWaiter.resolve(handover);
    }
    if (!turns.firstWaiter) return;
    turns.takenCount += 1;
    this.#takenTurns.begin();
    turns.firstWaiter.resolve(null);
  }

  /** Ends a turn that does not count against the maximum. No waiter gets this turn: waiters wait for counted ones. */
  endExemptTurn(slot: string): void {
    const turns = this.#getOrCreateTurns(slot);
    turns.exemptCount -= 1;
    turns.takenCount -= 1;
    if (turns.takenCount === 0) this.#turnsBySlot.delete(slot);
    this.#takenTurns.end();
  }

  /** Rejects the waiters of all slots. Callers that have a turn keep it. */
  rejectWaiters(reason: unknown): void {
    for (const slot of this.#turnsBySlot.keys()) this.#rejectWaitersOf(slot, reason);
  }

  /** @param obstacle `undefined`: the backend does not know the holder */
  recordObstacle(slot: string, obstacle: Holder | Error | undefined): void {
    if (obstacle) this.#obstaclesBySlot.set(slot, obstacle);
    else this.#obstaclesBySlot.delete(slot);
  }

  getObstacle(slot: string): Holder | Error | undefined {
    return this.#obstaclesBySlot.get(slot);
  }

  /** Makes the next caller of the slot let other processes ask first. */
  markToYield(slot: string): void {
    this.#yieldingSlots.add(slot);
  }

  consumeYieldMark(slot: string): boolean {
    return this.#yieldingSlots.delete(slot);
  }

  #rejectWaitersOf(slot: string, reason: unknown): void {
    for (const waiter of this.#turnsBySlot.get(slot)?.waiters ?? []) waiter.reject(reason);
  }

  /** Returns the object of a slot. Creates the object after a `tryTakeTurn` for a free slot, which creates none. */
  #getOrCreateTurns(slot: string): SlotTurns<Handover> {
    if (!this.#turnsBySlot.has(slot)) throw new Error('somebody has a turn, or has asked for one');
    const turns = this.#turnsBySlot.get(slot) ?? new SlotTurns();
    this.#turnsBySlot.set(slot, turns);
    return turns;
  }
}
