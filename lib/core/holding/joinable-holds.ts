import type { ResolvedOptions } from '../options/lock-options.js';
import type { HandOffOptions } from '../options/hand-off-options.js';
import { areHandOffsExhausted } from '../turns/hand-off-limits.js';
import { haveSameRequest } from '../turns/slot.js';
import type { Hold } from './hold.js';

/**
 * Holds of shared keys, which callers of this process may join without a request to the server. A hold is joined no
 * more often, and for no longer, than the limits of hand-offs allow. Later callers send a request, so that a waiting
 * writer gets the key first.
 */
export class JoinableHolds {
  readonly #bySlot = new Map<string, Hold>();

  constructor(private readonly limits: HandOffOptions) {}

  add(hold: Hold): void {
    this.#bySlot.set(hold.slot, hold);
  }

  remove(hold: Hold): void {
    if (this.#bySlot.get(hold.slot) === hold) this.#bySlot.delete(hold.slot);
  }

  /** Joins the hold of a slot if the caller may, and returns the hold. */
  tryJoinSlot(slot: string, options: ResolvedOptions): Hold | undefined {
    const hold = this.#bySlot.get(slot);
    return hold && this.tryJoin(hold, options) ? hold : undefined;
  }

  /** Joins `hold` if the caller may, and returns whether it has. */
  tryJoin(hold: Hold, options: ResolvedOptions): boolean {
    if (!canJoin(hold, options)) return false;
    const { watchdog, listener } = hold;
    if (
      areHandOffsExhausted(
        this.limits,
        watchdog.lease,
        hold.joinCount,
        listener.service.clock.now() - watchdog.grantedAt,
      )
    )
      return false;
    hold.join();
    return true;
  }
}

/**
 * Returns whether a caller may join `hold`, which keeps the options of its first caller. Hence both must want the same
 * request. The options of neither may end the hold before its release, or keep the key closed after it.
 */
function canJoin(hold: Hold, options: ResolvedOptions): boolean {
  const endsOnlyByRelease = ({ watchdog, maxHoldMs, minHoldMs }: ResolvedOptions): boolean =>
    watchdog && maxHoldMs === Infinity && minHoldMs === 0;
  return (
    haveSameRequest(options, hold.options) &&
    endsOnlyByRelease(options) &&
    endsOnlyByRelease(hold.options) &&
    hold.isHeld &&
    hold.canBeHandedOff
  );
}
