import type { Lease } from '../leasing/lease.js';

/** How often, and for how long, the callers of one process may pass a lease on among themselves. */
export interface HandOffLimits {
  readonly times: number;
  readonly ms: number;
}

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
export const HAND_OFF_BITS = 11n;
/** All that these bits can count. They fill most of a turn in line where there is nothing to do inside. */
export const MAX_HAND_OFFS = 2_047;
const MAX_HAND_OFF_MS = 100;

/**
 * A turn has to be long, so that few of its callers are those who waited for it, and a round of the processes short,
 * since one of them waits for all the others' turns.
 */
const MAX_HAND_OFF_MS_IN_LINE = 20;

export function handOffLimits(
  { maxHandOffs = MAX_HAND_OFFS, maxHandOffMs }: HandOffOptions,
  { queued = false }: Lease,
): HandOffLimits {
  return { times: maxHandOffs, ms: maxHandOffMs ?? (queued ? MAX_HAND_OFF_MS_IN_LINE : MAX_HAND_OFF_MS) };
}
