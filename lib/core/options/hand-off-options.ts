/** Limits of the hand-offs of a lease from caller to caller inside this process. */
export interface HandOffOptions {
  /**
   * Maximum number of hand-offs before other processes get their turn, at most 2,047: a fencing token has no bits for
   * more. @default 2_047
   */
  maxHandOffs?: number;
  /**
   * Milliseconds for which a lease may be handed on before other processes get their turn. @default 100, or 20 for a lease
   * that was waited for in the server's queue
   */
  maxHandOffMs?: number;
}

/** Bits of a fencing token that count hand-offs, so that callers of one lease have growing tokens too. */
export const HAND_OFF_BITS: bigint = 11n;
/** Largest number that these bits can count. It is enough for `maxHandOffMs` even where the work takes no time. */
export const MAX_HAND_OFFS = 2_047;
