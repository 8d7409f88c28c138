import { type Holder, type LeaseAttempt, type LeaseState, unpackHolder } from '../../../core/index.js';
import type { ClaimsRefusal } from './lease-statements.js';

/** Returns the refusal that a row describes. A missing row means that the key has just become free. */
export function parseRefusal(row: Record<string, unknown> | undefined): LeaseAttempt & ClaimsRefusal {
  if (!row) return { acquired: false, retryAfterMs: 0 };
  const { remaining, metadata } = row;
  // Claims of several owners are stored as a JSON array, and a single holder as a JSON object.
  if (typeof metadata === 'string' && metadata.startsWith('[')) {
    return { acquired: false, retryAfterMs: 0, isHeldByClaims: true };
  }
  const holder = parseHolder(row);
  const retryAfterMs = remaining === null ? null : Number(remaining);
  return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
}

export function parseState(row: Record<string, unknown> | undefined): LeaseState {
  if (!row) return {};
  const { owner, token, remaining } = row;
  const fencingToken = typeof token === 'string' ? { fencingToken: BigInt(token) } : {};
  const leftMs = ['string', 'number', 'bigint'].includes(typeof remaining) ? { leftMs: Number(remaining) } : {};
  return { holder: { owner: typeof owner === 'string' ? owner : '', ...fencingToken, ...leftMs, ...parseHolder(row) } };
}

/**
 * Returns the holder that a row describes, if there is one. The row of an older program has only `legacy_owner`: the
 * process id is unknown, and shown as 0.
 */
export function parseHolder({
  metadata,
  legacy_owner: legacyOwner,
  since: sinceMs,
}: Record<string, unknown>): Holder | undefined {
  const since = sinceMs !== null && Number.isFinite(Number(sinceMs)) ? new Date(Number(sinceMs)) : undefined;
  const holder = typeof metadata === 'string' ? unpackHolder(metadata, since) : undefined;
  if (holder || typeof legacyOwner !== 'string') return holder;
  return { host: legacyOwner, pid: 0, ...(since ? { since } : {}) };
}
