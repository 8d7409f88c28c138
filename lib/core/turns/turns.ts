import { isLockError } from '../contract/errors.js';
import type { Holder } from '../contract/holder.js';
import { WaitGroup } from '../kit/wait-group.js';
import type { ResolvedOptions } from '../options/lock-options.js';
import type { Deadline } from '../time/deadline.js';
import { Waiter } from './waiter.js';

/** Turns of one slot that are taken, and its waiters in order of arrival. A set removes one in constant time. */
class SlotTurns<Handed> {
  readonly waiters = new Set<Waiter<Handed>>();
  taken = 1;
  /** Number of taken turns that keep nobody from another one: see `Turns.share`. */
  shared = 0;

  get first(): Waiter<Handed> | undefined {
    return this.waiters.values().next().value;
  }
}

/**
 * Turns of the callers of this process, first come, first served. One caller of a slot at a time has the *turn*, which is
 * the right to ask the backend for the key. A hot key therefore costs the server one contender per process, however many callers there are.
 * See `slotOf`.
 */
export class Turns<Handed> {
  /** Most slots have one turn and no waiters, for which `undefined` is enough. */
  readonly #bySlot = new Map<string, SlotTurns<Handed> | undefined>();
  readonly #taken = new WaitGroup();
  /** Holder or failure in the way of a slot's callers, as the caller with the turn last learned it. */
  readonly #obstacles = new Map<string, Holder | Error>();
  /** Slots whose callers have had the key for as long as they may. */
  readonly #yielding = new Set<string>();

  /** @param underWay counts what one caller has handed to the next until that one has begun with it */
  constructor(private readonly underWay: WaitGroup) {}

  /** Whether any turn is taken. */
  get isBusy(): boolean {
    return this.#bySlot.size > 0;
  }

  /** Resolves when no turn is taken. */
  idle(): Promise<void> {
    return this.#taken.idle();
  }

  /** Takes a turn if one is free, and returns whether it was. */
  enter(slot: string, maxTurns: number): boolean {
    if (!this.#bySlot.has(slot)) this.#bySlot.set(slot, undefined);
    else {
      const turns = this.#bySlot.get(slot);
      if ((turns?.waiters.size ?? 0) > 0 || (turns?.taken ?? 1) - (turns?.shared ?? 0) >= maxTurns) return false;
      this.#turnsOf(slot).taken += 1;
    }
    this.#taken.begin();
    return true;
  }

  countWaiters(slot: string): number {
    return this.#bySlot.get(slot)?.waiters.size ?? 0;
  }

  /** Options of the caller who gets the next turn. */
  nextOptions(slot: string): ResolvedOptions | undefined {
    return this.#bySlot.get(slot)?.first?.options;
  }

  /**
   * Waits for a turn that `enter` refused. Resolves to what the previous caller passed on, to `null` for a turn alone,
   * and to `'timed-out'` at the deadline. Rejects with the signal's reason. In the last two cases the caller has no turn.
   */
  wait(slot: string, options: ResolvedOptions, deadline: Deadline): Promise<Handed | null | 'timed-out'> {
    return new Promise((resolve, reject) => {
      const { waiters } = this.#turnsOf(slot);
      waiters.add(new Waiter(options, deadline, waiters, resolve, reject));
    });
  }

  /** Ends the caller's turn with something for the next caller, who must be there. */
  pass(slot: string, handed: Handed): void {
    this.underWay.begin();
    this.#obstacles.delete(slot);
    this.#bySlot.get(slot)?.first?.resolve(handed);
  }

  /** Ends the caller's turn. */
  end(slot: string): void {
    this.#obstacles.delete(slot);
    const turns = this.#bySlot.get(slot);
    if (turns?.first) return turns.first.resolve(null);
    this.#yielding.delete(slot);
    if (turns && turns.taken > 1) turns.taken -= 1;
    else this.#bySlot.delete(slot);
    this.#taken.end();
  }

  /**
   * Ends the turn of a caller whom the backend failed. Unless the caller's time was merely too short, the slot's waiters
   * are rejected with the same failure. Each waiter would otherwise need as long again, one after the other, and most
   * would be told that the key is held.
   */
  fail(slot: string, failure: unknown, deadline: Deadline): void {
    if (!isLockError(failure, 'LOCK_BACKEND')) return this.end(slot);
    if (!deadline.passed) this.#reject(slot, failure);
    const hasNext = this.countWaiters(slot) > 0;
    this.end(slot);
    if (hasNext) this.recordObstacle(slot, failure);
  }

  /**
   * Lets others join the lease of the caller, who keeps a turn that is nobody's obstacle any more. Waiters at the head
   * who may join get `handed` without a turn; the first one who may not gets a turn to ask.
   */
  share(slot: string, mayJoin: (options: ResolvedOptions) => boolean, handed: Handed): void {
    this.#obstacles.delete(slot);
    const turns = this.#turnsOf(slot);
    turns.shared += 1;
    while (turns.first && mayJoin(turns.first.options)) {
      this.underWay.begin();
      turns.first.resolve(handed);
    }
    if (!turns.first) return;
    turns.taken += 1;
    this.#taken.begin();
    turns.first.resolve(null);
  }

  /** Ends a turn that was shared. Waiters wait for another one. */
  endShared(slot: string): void {
    const turns = this.#turnsOf(slot);
    turns.shared -= 1;
    turns.taken -= 1;
    if (turns.taken === 0) this.#bySlot.delete(slot);
    this.#taken.end();
  }

  /** Sends all waiters away. Callers who have a turn keep it. */
  rejectAll(reason: unknown): void {
    for (const slot of this.#bySlot.keys()) this.#reject(slot, reason);
  }

  /** @param obstacle `undefined`: the backend cannot say who holds the key */
  recordObstacle(slot: string, obstacle: Holder | Error | undefined): void {
    if (obstacle) this.#obstacles.set(slot, obstacle);
    else this.#obstacles.delete(slot);
  }

  /** Returns what is in the way of a slot's callers, as far as it is known. */
  obstacleOf(slot: string): Holder | Error | undefined {
    return this.#obstacles.get(slot);
  }

  /** Marks a slot: its next caller lets other processes ask first. */
  markToYield(slot: string): void {
    this.#yielding.add(slot);
  }

  /** Removes the mark of a slot, and returns whether it had one. */
  consumeYieldMark(slot: string): boolean {
    return this.#yielding.delete(slot);
  }

  #reject(slot: string, reason: unknown): void {
    for (const waiter of this.#bySlot.get(slot)?.waiters ?? []) waiter.reject(reason);
  }

  #turnsOf(slot: string): SlotTurns<Handed> {
    if (!this.#bySlot.has(slot)) throw new Error('somebody has a turn, or has asked for one');
    const turns = this.#bySlot.get(slot) ?? new SlotTurns();
    this.#bySlot.set(slot, turns);
    return turns;
  }
}
