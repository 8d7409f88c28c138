/** A server's `tickTime`, by default. */
const USUAL_TICK_MS = 2_000;
const LEAST_TICKS = 6;

/**
 * The leader ends sessions. It hears of its followers' sessions with every half tick. A follower that is cut off
 * answers reads for `syncLimit` ticks more, while the leader ends the session and lets the next holder in. Therefore
 * life signs go through the leader (`sync`), and each proves that the leader knows of the one before it. A third of the
 * time-out is kept back for the time between the two, which is exact when the time-out is six ticks or more.
 */
export function timesOf(sessionMs: number) {
  return {
    /** How long a holder trusts its lock, from before the last answered life sign was sent. */
    trustMs: (sessionMs * 2) / 3,
    /** From one life sign to the next, at the latest. */
    beatMs: (sessionMs * 2) / 9,
    /** The leader hears of a life sign within this time after a follower has received it. */
    lagMs: sessionMs / 12,
  };
}

/** The silence after which another server is asked, while the session lasts. */
export function silenceMsOf(sessionMs: number, requestTimeoutMs: number): number {
  return Math.min(sessionMs / 4, requestTimeoutMs);
}

/** Advice for an operator on a session that was requested with `askedMs`; `undefined` when all is well. */
export function adviceOn(sessionMs: number, askedMs: number): string | undefined {
  const leastMs = LEAST_TICKS * USUAL_TICK_MS;
  const changed = `the server has made a session of ${sessionMs} ms of the sessionTtlMs ${askedMs}: see its limits`;
  const short =
    `a session of ${sessionMs} ms should be ${LEAST_TICKS} ticks of the server, which are ${leastMs} ms by default: ` +
    'less, and a holder whose server is cut off from the others may trust its lock for too long';
  const advice = [...(sessionMs === askedMs ? [] : [changed]), ...(sessionMs < leastMs ? [short] : [])];
  return advice.join('; ') || undefined;
}
