import type { StoredItem } from './dialect.js';
import { MemcachedError } from './error.js';
import type { VerifiedConnection } from './verified-connection.js';

/**
 * Maximum distance in microseconds between a fencing token and the present. A counter starts with the time, and grows
 * more slowly than the time, so that it lags by at most its age. Former versions of this package kept a counter for a
 * day.
 */
const MAX_TOKEN_DISTANCE_US = 2n * 86_400_000_000n;

export function assertKeptLongEnough(
  { clock }: VerifiedConnection,
  { remainingS = Infinity }: StoredItem,
  trustedMs: number,
): void {
  if (remainingS * 1_000 >= trustedMs) return;
  clock.invalidate();
  throw new MemcachedError('refused', `the server would keep the lease for ${remainingS} s only`);
}

export function requirePlausibleToken(token: bigint, timeUs: bigint): bigint {
  if (token > timeUs - MAX_TOKEN_DISTANCE_US && token < timeUs + MAX_TOKEN_DISTANCE_US) return token;
  throw new MemcachedError(
    'refused',
    `the counter of fencing tokens shows ${token}: delete it, for no lock service made it`,
  );
}
