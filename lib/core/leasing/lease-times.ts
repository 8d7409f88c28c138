/** Times of one lease. Durations are in milliseconds. */
export interface LeaseTimes {
  /** Time to live that the acquisition and each renewal request. */
  readonly requestedTtlMs: number;
  /** Time to live on the server. In a store with sessions it is the session's. */
  readonly serverTtlMs: number;
  /**
   * Part of `serverTtlMs` without the `untrustedMs` of the request at its end. The holder trusts the lease for nearly
   * all of it, see `getEndOfTrust`.
   */
  readonly trustedMs: number;
  /** Time by the clock, right before the granted request was sent. */
  readonly sentAt: number;
}
