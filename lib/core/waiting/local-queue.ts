import { claimFor, EXCLUSIVE, suffixOf } from '../contract/claim.js';
import { WaitGroup } from '../kit/wait-group.js';
import type { ResolvedOptions } from '../lock-options.js';
import type { Deadline } from '../time/deadline.js';
import { Turns, Waiter } from './turns.js';

/** No key has it, because keys are well-formed. */
const LONE_SURROGATE = '\ud800';

/** The callers of this process who can take each other's place: those with the same key, who want as much of it. */
export function slotOf(key: string, options: ResolvedOptions): string {
  const suffix = suffixOf(options);
  return suffix === '' ? key : key + LONE_SURROGATE + suffix;
}

/** How many callers of a slot may ask the server at a time: no more than could ever hold the key. */
export function mostTurns(options: ResolvedOptions): number {
  const claim = claimFor(options);
  return claim.of === EXCLUSIVE.of ? 1 : Math.floor(claim.of / claim.permits);
}

/** Whether the same request to the backend would do for the next caller. */
export function isAlike(
  next: ResolvedOptions | undefined,
  { ttlMs, lockDelayMs, minHoldMs }: ResolvedOptions,
): boolean {
  return next?.ttlMs === ttlMs && next.lockDelayMs === lockDelayMs && next.minHoldMs === minHoldMs;
}

/** The queue entry that a caller leaves to the next one here when it gives up. */
export interface LeftEntry {
  readonly owner: string;
}

/**
 * First come, first served inside this process: for each slot, which is a key for those who want all of it, one caller
 * at a time has the *turn*, the right to talk to the backend about it. So a hot key costs the server one contender per
 * process, however many callers there are.
 */
export class LocalQueue<Handed> {
  /** The slots whose turn somebody has. Most have one turn and nobody who waits, and need nothing more. */
  readonly #turns = new Map<string, Turns<Handed> | undefined>();
  readonly #taken = new WaitGroup();

  /** Whether anybody has a turn, or waits for one. */
  get busy(): boolean {
    return this.#turns.size > 0;
  }

  /** Resolves when nobody has a turn, or waits for one. */
  idle(): Promise<void> {
    return this.#taken.idle();
  }

  /** Whether a turn was free, and is now the caller's. @param most turns of the slot at a time */
  enter(slot: string, most = 1): boolean {
    if (!this.#turns.has(slot)) this.#turns.set(slot, undefined);
    else {
      const turns = this.#turns.get(slot);
      if ((turns?.line.size ?? 0) > 0 || (turns?.taken ?? 1) - (turns?.shared ?? 0) >= most) return false;
      this.#turnsOf(slot).taken += 1;
    }
    this.#taken.begin();
    return true;
  }

  waiting(slot: string): number {
    return this.#turns.get(slot)?.line.size ?? 0;
  }

  /**
   * Waits for a turn that `enter` refused. Resolves to what the one before hands on, to `null` for a bare turn, to
   * `'timed-out'` when the deadline passed, and rejects with the signal's reason; in the last two cases the caller has
   * no turn.
   */
  wait(slot: string, options: ResolvedOptions, deadline: Deadline): Promise<Handed | null | 'timed-out'> {
    return new Promise((resolve, reject) => {
      const { line } = this.#turnsOf(slot);
      line.add(new Waiter(options, deadline, line, resolve, reject));
    });
  }

  /** Who is next, so that the one who leaves can see whether its lease would fit. */
  next(slot: string): ResolvedOptions | undefined {
    return this.#turns.get(slot)?.first?.options;
  }

  /** Sends every waiter away. Those who have a turn keep it. */
  rejectAll(reason: unknown): void {
    for (const slot of this.#turns.keys()) this.reject(slot, reason);
  }

  /** Sends those away who wait for one slot. */
  reject(slot: string, reason: unknown): void {
    for (const waiter of this.#turns.get(slot)?.line ?? []) waiter.reject(reason);
  }

  /** Ends the caller's turn. Whether a waiter has it now, with `handed`; where nobody waits, that must be `null`. */
  endTurn(slot: string, handed: Handed | null): boolean {
    const turns = this.#turns.get(slot);
    if (turns?.first) {
      turns.first.resolve(handed);
      return true;
    }
    if (turns && turns.taken > 1) turns.taken -= 1;
    else this.#turns.delete(slot);
    this.#taken.end();
    return false;
  }

  /**
   * The caller has a lease that others may join: it keeps its turn, which is nobody's obstacle any more. Those at the
   * head of the line who are `alike` get `handed` without a turn, and whoever comes next has a turn to ask.
   */
  share(slot: string, alike: (options: ResolvedOptions) => boolean, handed: () => Handed): void {
    const turns = this.#turnsOf(slot);
    turns.shared += 1;
    while (turns.first && alike(turns.first.options)) turns.first.resolve(handed());
    if (!turns.first) return;
    turns.taken += 1;
    this.#taken.begin();
    turns.first.resolve(null);
  }

  /** Ends a turn that was shared. Those who wait, wait for another one. */
  endShared(slot: string): void {
    const turns = this.#turnsOf(slot);
    turns.shared -= 1;
    turns.taken -= 1;
    if (turns.taken === 0) this.#turns.delete(slot);
    this.#taken.end();
  }

  #turnsOf(slot: string): Turns<Handed> {
    if (!this.#turns.has(slot)) throw new Error('somebody has a turn, or has asked for one');
    const turns = this.#turns.get(slot) ?? new Turns();
    this.#turns.set(slot, turns);
    return turns;
  }
}
