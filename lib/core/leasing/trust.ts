/** Share of the TTL for which a holder trusts its lease. The rest absorbs the drift between clocks, and late timers. */
const TRUSTED_SHARE = 0.99;
const TRUST_MARGIN_MS = 2;

/**
 * Returns the time, on the monotonic clock of this process, until which a lease may be trusted.
 * @param sentAt time at which the request for the lease was sent
 */
export function getEndOfTrust(sentAt: number, ttlMs: number): number {
  return sentAt + ttlMs * TRUSTED_SHARE - TRUST_MARGIN_MS;
}
