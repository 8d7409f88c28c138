export interface LeaseTimes {
  /** TTL that the acquisition and each renewal ask for. */
  readonly requestedTtlMs: number;
  /** TTL on the server. In a store with sessions it is the session's. */
  readonly serverTtlMs: number;
  /** `serverTtlMs` less the `untrustedMs` of the request. `getEndOfTrust` deducts a margin from it. */
  readonly trustedMs: number;
  /** Time by the clock, right before the granted request was sent. */
  readonly sentAt: number;
}
