import type { ResolvedOptions } from '../options/lock-options.js';
import type { HandOffOptions } from '../options/hand-off-options.js';
import { areHandOffsExhausted } from '../turns/hand-off-limits.js';
import { haveSameRequest } from '../turns/slot.js';
import type { Hold } from './hold.js';

/**
 * Shared holds that callers of this process may join without a request to the server. The limits of hand-offs also
 * limit joins, so that a waiting exclusive caller gets the key, too.
 */
export class JoinableHolds {
  readonly #holdsBySlot = new Map<string, Hold>();

  constructor(private readonly limits: HandOffOptions) {}

  add(hold: Hold): void {
    this.#holdsBySlot.set(hold.slot, hold);
  }

  remove(hold: Hold): void {
    if (this.#holdsBySlot.get(hold.slot) === hold) this.#holdsBySlot.delete(hold.slot);
  }

  tryJoinHoldOfSlot(slot: string, options: ResolvedOptions): Hold | undefined {
    const hold = this.#holdsBySlot.get(slot);
    return hold && this.tryJoin(hold, options) ? hold : undefined;
  }

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
 * Returns whether a caller with `options` may join `hold`, which keeps the options of its first caller. Both options
 * must ask for the same lease. Neither may end the hold before its release, or keep the key closed afterwards.
 */
function canJoin(hold: Hold, options: ResolvedOptions): boolean {
  const endsOnlyByRelease = ({ watchdog, maxHoldMs, minHoldMs }: ResolvedOptions): boolean =>
    watchdog && maxHoldMs === Infinity && minHoldMs === 0;
  return (
    haveSameRequest(options, hold.options) &&
    options.reentrant === hold.options.reentrant &&
    endsOnlyByRelease(options) &&
    endsOnlyByRelease(hold.options) &&
    hold.isHeld &&
    hold.canBeHandedOff
  );
}
