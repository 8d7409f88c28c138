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
/** Largest number that these bits can count. It fills most of a turn in line where there is nothing to do inside. */
export const MAX_HAND_OFFS = 2_047;
