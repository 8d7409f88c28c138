/** Times of one lease. Durations are in milliseconds. */
export interface LeaseTimes {
  /** Time to live that the server was asked for, and is asked for with each renewal. */
  readonly askedMs: number;
  /** Time to live that the server keeps: a server with sessions keeps the session's. */
  readonly keptMs: number;
  /** Part of `keptMs` for which the holder trusts the lease. The rest is its lock-delay. */
  readonly trustedMs: number;
  /** `clock.now()` before the request was sent that granted the lease. */
  readonly sentAt: number;
}
