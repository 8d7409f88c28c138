import { type Holder, unpackHolder } from '../../core/index.js';
import { splitFields } from '../redis/scripts/redis-values.js';

/** Lease of a key on one node. `owner` is empty when there is no lease. */
export interface NodeLease {
  readonly owner: string;
  readonly token: bigint;
  /** Milliseconds until the lease ends; Infinity for a lease without an end. */
  readonly leftMs: number;
  readonly holder: Holder | undefined;
}

export function parseNodeLease(leftMs: number, packedLease: string): NodeLease {
  // A value of another program has no such fields: the whole value counts as the owner's name.
  const [owner = packedLease, tokenText = '', , metadata = ''] = splitFields(packedLease, 4);
  // A token is the time of the grant in microseconds, or a little more.
  const holder = unpackHolder(metadata, new Date(Number(tokenText) / 1_000));
  const token = /^\d+$/u.test(tokenText) ? BigInt(tokenText) : 0n;
  return { owner, token, leftMs: leftMs < 0 ? Infinity : leftMs, holder };
}
