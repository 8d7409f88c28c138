const DEFAULT_TICK_MS = 2_000;
const MIN_TICKS = 6;

/**
 * The leader ends sessions, and hears of its followers' sessions with every half tick. A follower that is cut off
 * answers reads for `syncLimit` ticks more. Meanwhile the leader may end the session and grant the key to the next
 * owner.
 *
 * Heartbeats therefore go through the leader (`sync`). Each one proves that the leader has heard of the heartbeat
 * before it, sent up to a third of the time-out earlier. A holder may trust its lock for the other two thirds, if the
 * time-out is six ticks or more.
 */
export function computeSessionTimes(negotiatedTtlMs: number) {
  return {
    /** Milliseconds for which a holder trusts its lock, from the send time of the last answered heartbeat. */
    trustMs: (negotiatedTtlMs * 2) / 3,
    /**
     * Milliseconds between two heartbeats. The time is short, because with slow answers a heartbeat only proves one
     * that was sent several heartbeats earlier.
     */
    heartbeatIntervalMs: negotiatedTtlMs / 9,
    /** Maximum milliseconds until a follower tells the leader of a heartbeat. */
    lagMs: negotiatedTtlMs / 12,
  };
}

/** Returns how long a server may be silent. The next server is then tried while the session still has time left. */
export function getMaxSilenceMs(negotiatedTtlMs: number, requestTimeoutMs: number): number {
  return Math.min(negotiatedTtlMs / 4, requestTimeoutMs);
}

export function getSessionAdvice(negotiatedTtlMs: number, requestedMs: number): string | undefined {
  const minMs = MIN_TICKS * DEFAULT_TICK_MS;
  const changeAdvice = `the server has made a session of ${negotiatedTtlMs} ms of the sessionTtlMs ${requestedMs}: see its limits`;
  const shortSessionAdvice =
    `a session of ${negotiatedTtlMs} ms should be ${MIN_TICKS} ticks of the server, which are ${minMs} ms by default: ` +
    'less, and a holder whose server is cut off from the others may trust its lock for too long';
  const advice = [
    ...(negotiatedTtlMs === requestedMs ? [] : [changeAdvice]),
    ...(negotiatedTtlMs < minMs ? [shortSessionAdvice] : []),
  ];
  return advice.join('; ') || undefined;
}
