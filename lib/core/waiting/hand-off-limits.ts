import type { Lease } from '../leasing/lease.js';

export interface HandOffOptions {
  /**
   * How often a lease may pass from caller to caller inside this process before others get their turn; at most 2,047,
   * which is what a fencing token has bits for. @default 2_047
   */
  maxHandOffs?: number;
  /**
   * How long a lease may pass from caller to caller inside this process before others get their turn, in milliseconds.
   * @default 100; 20 where the backend has its waiters stand in line, and the lease was waited for
   */
  maxHandOffMs?: number;
}

/** Bits of a fencing token that count hand-offs, so that callers of one lease have growing tokens too. */
export const HAND_OFF_BITS: bigint = 11n;
/** All that these bits can count. They fill most of a turn in line where there is nothing to do inside. */
export const MAX_HAND_OFFS = 2_047;
const MAX_HAND_OFF_MS = 100;

/**
 * A turn has to be long, so that few of its callers are those who waited for it, and a round of the processes short,
 * since one of them waits for all the others' turns.
 */
const MAX_HAND_OFF_MS_IN_LINE = 20;

/** Whether callers of this process have had a lease for as often, or as long, as they may. */
export function isExhausted(
  { maxHandOffs = MAX_HAND_OFFS, maxHandOffMs }: HandOffOptions,
  { queued = false }: Lease,
  times: number,
  heldMs: number,
): boolean {
  const longestMs = maxHandOffMs ?? (queued ? MAX_HAND_OFF_MS_IN_LINE : MAX_HAND_OFF_MS);
  return times >= maxHandOffs || heldMs >= longestMs;
}
