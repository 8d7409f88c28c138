import type { ResolvedOptions } from '../options/lock-options.js';
import type { HandOffOptions } from '../options/hand-off-options.js';
import { isExhausted } from '../turns/hand-off-limits.js';
import { haveSameRequest } from '../turns/slot.js';
import type { Hold } from './hold.js';

/**
 * Holds of shared keys, which callers of this process join instead of asking the server, for as long as a lease may be
 * handed on. Later callers ask, and stand behind a writer who waits.
 */
export class JoinableHolds {
  readonly #bySlot = new Map<string, Hold>();

  constructor(private readonly limits: HandOffOptions) {}

  offer(hold: Hold): void {
    this.#bySlot.set(hold.slot, hold);
  }

  withdraw(hold: Hold): void {
    if (this.#bySlot.get(hold.slot) === hold) this.#bySlot.delete(hold.slot);
  }

  /** Joins the hold of a slot, if the caller may, and returns it. */
  join(slot: string, options: ResolvedOptions): Hold | undefined {
    const hold = this.#bySlot.get(slot);
    return hold && this.tryJoin(hold, options) ? hold : undefined;
  }

  /** Joins `hold` if the caller may, and returns whether it has. */
  tryJoin(hold: Hold, options: ResolvedOptions): boolean {
    if (!mayJoin(hold, options)) return false;
    const { watchdog, listener } = hold;
    if (isExhausted(this.limits, watchdog.lease, hold.joined, listener.service.clock.now() - watchdog.since))
      return false;
    hold.join();
    return true;
  }
}

/** Returns whether a caller may join, who then has the lease by the options of its first caller, and loses it with it. */
function mayJoin(hold: Hold, options: ResolvedOptions): boolean {
  const lasts = ({ watchdog, maxHoldMs, minHoldMs }: ResolvedOptions): boolean =>
    watchdog && maxHoldMs === Infinity && minHoldMs === 0;
  return (
    haveSameRequest(options, hold.options) && lasts(options) && lasts(hold.options) && hold.isHeld && hold.canBePassedOn
  );
}
