import { isLockError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import { WaitGroup } from '../kit/wait-group.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import type { Deadline } from '../time/deadline.js';
import { Waiter } from './waiter.js';

/** Number of taken turns of one slot, and the waiters of the slot in order of arrival. */
class SlotTurns<Handover> {
  readonly waiters = new Set<Waiter<Handover>>();
  takenCount = 1;
  /** Number of taken turns that do not count against the maximum: see `Turns.shareTurn`. */
  sharedCount = 0;

  get firstWaiter(): Waiter<Handover> | undefined {
    return this.waiters.values().next().value;
  }
}

/**
 * Turns of the callers of this process, first come, first served. A *turn* is the right to ask the backend for a key,
 * and to hold it. Callers of a slot get turns one by one, so that a hot key has one contender per process. See
 * `slotOf`.
 */
export class Turns<Handover> {
  /** Most slots have one turn and no waiters, for which `undefined` is enough. */
  readonly #bySlot = new Map<string, SlotTurns<Handover> | undefined>();
  readonly #takenTurns = new WaitGroup();
  /** Holder or failure because of which the callers of a slot wait, as the backend last reported it. */
  readonly #obstacles = new Map<string, Holder | Error>();
  /** Slots that have used up their hand-offs: see `markToYield`. */
  readonly #yieldingSlots = new Set<string>();

  /** @param pendingHandovers counts handovers that the next caller has not begun to use */
  constructor(private readonly pendingHandovers: WaitGroup) {}

  /** Whether any turn is taken. */
  get isBusy(): boolean {
    return this.#bySlot.size > 0;
  }

  /** Resolves when no turn is taken. */
  untilIdle(): Promise<void> {
    return this.#takenTurns.untilIdle();
  }

  /** Takes a turn if one is free, and returns whether it was. */
  tryTakeTurn(slot: string, maxTurns: number): boolean {
    if (!this.#bySlot.has(slot)) this.#bySlot.set(slot, undefined);
    else {
      const turns = this.#bySlot.get(slot);
      if ((turns?.waiters.size ?? 0) > 0 || (turns?.takenCount ?? 1) - (turns?.sharedCount ?? 0) >= maxTurns)
        return false;
      this.#turnsOf(slot).takenCount += 1;
    }
    this.#takenTurns.begin();
    return true;
  }

  countWaiters(slot: string): number {
    return this.#bySlot.get(slot)?.waiters.size ?? 0;
  }

  /** Returns the options of the caller that gets the next turn. */
  nextOptions(slot: string): ResolvedOptions | undefined {
    return this.#bySlot.get(slot)?.firstWaiter?.options;
  }

  /**
   * Waits for a turn after `tryTakeTurn` returned false. Resolves to the handover of the previous caller, or to `null`
   * for a turn without one. Without a turn it resolves to `'timed-out'` at the deadline, or rejects with the signal's
   * reason.
   */
  waitForTurn(slot: string, options: ResolvedOptions, deadline: Deadline): Promise<Handover | null | 'timed-out'> {
    return new Promise((resolve, reject) => {
      const { waiters } = this.#turnsOf(slot);
      waiters.add(new Waiter(options, deadline, waiters, resolve, reject));
    });
  }

  /** Passes the caller's turn to the next caller, who must be waiting, together with a handover. */
  passTurn(slot: string, handover: Handover): void {
    this.pendingHandovers.begin();
    this.#obstacles.delete(slot);
    this.#bySlot.get(slot)?.firstWaiter?.resolve(handover);
  }

  /** Ends the caller's turn. */
  endTurn(slot: string): void {
    this.#obstacles.delete(slot);
    const turns = this.#bySlot.get(slot);
    if (turns?.firstWaiter) return turns.firstWaiter.resolve(null);
    this.#yieldingSlots.delete(slot);
    if (turns && turns.takenCount > 1) turns.takenCount -= 1;
    else this.#bySlot.delete(slot);
    this.#takenTurns.end();
  }

  /**
   * Ends the turn of a caller whose request failed. If the backend failed before the caller's deadline, all waiters of
   * the slot are rejected with the same failure. They would otherwise fail one after the other, each after the same
   * time.
   */
  failTurn(slot: string, failure: unknown, deadline: Deadline): void {
    if (!isLockError(failure, 'LOCK_BACKEND')) return this.endTurn(slot);
    if (!deadline.passed) this.#rejectWaitersOf(slot, failure);
    const hasNext = this.countWaiters(slot) > 0;
    this.endTurn(slot);
    if (hasNext) this.recordObstacle(slot, failure);
  }

  /**
   * Lets waiters join the caller's lease. The caller keeps its turn, which no longer counts against the maximum. The
   * first waiters, as long as they may join, get `handover` without a turn. The next waiter gets a turn.
   */
  shareTurn(slot: string, mayJoin: (options: ResolvedOptions) => boolean, handover: Handover): void {
    this.#obstacles.delete(slot);
    const turns = this.#turnsOf(slot);
    turns.sharedCount += 1;
    while (turns.firstWaiter && mayJoin(turns.firstWaiter.options)) {
      this.pendingHandovers.begin();
      turns.firstWaiter.resolve(handover);
    }
    if (!turns.firstWaiter) return;
    turns.takenCount += 1;
    this.#takenTurns.begin();
    turns.firstWaiter.resolve(null);
  }

  /** Ends a shared turn, without a turn for the next waiter: `shareTurn` gave it one before. */
  endSharedTurn(slot: string): void {
    const turns = this.#turnsOf(slot);
    turns.sharedCount -= 1;
    turns.takenCount -= 1;
    if (turns.takenCount === 0) this.#bySlot.delete(slot);
    this.#takenTurns.end();
  }

  /** Rejects all waiters. Callers that have a turn keep it. */
  rejectWaiters(reason: unknown): void {
    for (const slot of this.#bySlot.keys()) this.#rejectWaitersOf(slot, reason);
  }

  /** @param obstacle holder or failure, or `undefined` when the backend does not know the holder */
  recordObstacle(slot: string, obstacle: Holder | Error | undefined): void {
    if (obstacle) this.#obstacles.set(slot, obstacle);
    else this.#obstacles.delete(slot);
  }

  /** Returns the holder or failure because of which the callers of a slot wait, if it is known. */
  getObstacle(slot: string): Holder | Error | undefined {
    return this.#obstacles.get(slot);
  }

  /** Marks a slot, so that its next caller lets other processes ask first. */
  markToYield(slot: string): void {
    this.#yieldingSlots.add(slot);
  }

  /** Removes the mark of a slot, and returns whether it had one. */
  consumeYieldMark(slot: string): boolean {
    return this.#yieldingSlots.delete(slot);
  }

  #rejectWaitersOf(slot: string, reason: unknown): void {
    for (const waiter of this.#bySlot.get(slot)?.waiters ?? []) waiter.reject(reason);
  }

  #turnsOf(slot: string): SlotTurns<Handover> {
    if (!this.#bySlot.has(slot)) throw new Error('somebody has a turn, or has asked for one');
    const turns = this.#bySlot.get(slot) ?? new SlotTurns();
    this.#bySlot.set(slot, turns);
    return turns;
  }
}
