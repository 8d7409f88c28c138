export interface LeaseTimes {
  /** TTL that the acquisition and each renewal ask for. */
  readonly requestedTtlMs: number;
  /** TTL on the server: in a store with sessions that of the session. */
  readonly serverTtlMs: number;
  /** `serverTtlMs` less the `untrustedMs` of the request, before `getEndOfTrust` deducts its margin. */
  readonly trustedMs: number;
  /** Time by the clock, right before the granted request was sent. */
  readonly sentAt: number;
}
