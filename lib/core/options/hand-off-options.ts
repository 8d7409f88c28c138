/** Limits of the hand-offs of a lease from caller to caller inside this process. */
export interface HandOffOptions {
  /**
   * Maximum number of hand-offs before the lease is released to other processes, at most 2,000: a fencing token has no
   * bits for more. @default 2_000
   */
  maxHandOffs?: number;
  /**
   * Milliseconds after which a lease is handed off no more, but released to other processes. @default 100, or 20 for a
   * lease that waited in the server's queue
   */
  maxHandOffMs?: number;
}

/** Number of bits of a fencing token that count hand-offs, so that the callers of one lease have growing tokens. */
export const HAND_OFF_BITS: bigint = 11n;
export const MAX_HAND_OFFS = 2_000;
/**
 * Maximum number of hand-offs and transfers together, which fits into `HAND_OFF_BITS`. A few transfers may follow
 * `MAX_HAND_OFFS` hand-offs.
 */
export const MAX_TRANSFERS = 2_047;
