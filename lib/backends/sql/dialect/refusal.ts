import { type Holder, type LeaseAttempt, type LeaseState, unpackHolder } from '../../../core/index.js';
import type { MeetsLine } from './lease-statements.js';

/** A refusal out of the holder's row. Without a row the key was free a moment ago. */
export function readRefusal(row: Record<string, unknown> | undefined): LeaseAttempt & MeetsLine {
  if (!row) return { acquired: false, retryAfterMs: 0 };
  const { remaining, metadata } = row;
  // A line is a list, and a holder an object.
  if (typeof metadata === 'string' && metadata.startsWith('[')) {
    return { acquired: false, retryAfterMs: 0, meetsLine: true };
  }
  const holder = readHolder(row);
  const retryAfterMs = remaining === null ? null : Number(remaining);
  return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
}

/** Out of the holder's row. Without a `remaining`, the end of the lease is not known. */
export function readState(row: Record<string, unknown> | undefined): LeaseState {
  if (!row) return {};
  const { owner, token, remaining } = row;
  const fencingToken = typeof token === 'string' ? { fencingToken: BigInt(token) } : {};
  const leftMs = typeof remaining === 'string' || typeof remaining === 'number' ? { leftMs: Number(remaining) } : {};
  return { holder: { owner: typeof owner === 'string' ? owner : '', ...fencingToken, ...leftMs, ...readHolder(row) } };
}

/** The row of another program has a name of its own making, and no process id. */
export function readHolder({ metadata, stranger, since: sinceMs }: Record<string, unknown>): Holder | undefined {
  const since = sinceMs !== null && Number.isFinite(Number(sinceMs)) ? new Date(Number(sinceMs)) : undefined;
  const holder = typeof metadata === 'string' ? unpackHolder(metadata, since) : undefined;
  if (holder || typeof stranger !== 'string') return holder;
  return { host: stranger, pid: 0, ...(since ? { since } : {}) };
}
