/** The last bits of a fencing token count hand-offs. Written down here, too, because their number must never shrink. */
const HAND_OFF_BITS = 11n;
export const LAST_HAND_OFF = 2n ** HAND_OFF_BITS - 1n;

/** That of a holder who got a lease from the server, or after so many hand-offs. */
export function fencingToken(counted: bigint, handOff = 0n): bigint {
  return (counted << HAND_OFF_BITS) + handOff;
}

export function serverToken(token: bigint): bigint {
  return token >> HAND_OFF_BITS;
}
