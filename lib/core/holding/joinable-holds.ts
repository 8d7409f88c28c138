import type { ResolvedOptions } from '../options/lock-options.js';
import type { HandOffOptions } from '../options/hand-off-options.js';
import { isExhausted } from '../turns/hand-off-limits.js';
import { haveSameRequest } from '../turns/slot.js';
import type { Hold } from './hold.js';

/**
 * The holds of keys that are shared, which callers of this process join instead of asking the server. Only for as long as
 * a lease may be handed on: later ones ask, and stand behind a writer who waits.
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

  /** The hold that the caller has joined, if there is one. */
  join(slot: string, options: ResolvedOptions): Hold | undefined {
    const hold = this.#bySlot.get(slot);
    return hold && this.joins(hold, options) ? hold : undefined;
  }

  /** Whether the caller has joined `hold`. */
  joins(hold: Hold, options: ResolvedOptions): boolean {
    if (!mayJoin(hold, options)) return false;
    const { watchdog, listener } = hold;
    if (isExhausted(this.limits, watchdog.lease, hold.joined, listener.service.clock.now() - watchdog.since))
      return false;
    hold.join();
    return true;
  }
}

/** Whoever joins has the lease by its first one's options, and ends with it. */
function mayJoin(hold: Hold, options: ResolvedOptions): boolean {
  const lasts = ({ watchdog, maxHoldMs, minHoldMs }: ResolvedOptions): boolean =>
    watchdog && maxHoldMs === Infinity && minHoldMs === 0;
  return (
    haveSameRequest(options, hold.options) && lasts(options) && lasts(hold.options) && hold.isHeld && hold.mayHandOver
  );
}
