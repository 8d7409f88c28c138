import { type Holder, unpackHolder } from '../../core/index.js';
import { splitFields } from '../redis/scripts/redis-values.js';

/** A lease as a node has it; without one, the owner is empty. */
export interface NodeLease {
  readonly owner: string;
  readonly token: bigint;
  /** Infinity for a lease without an end. */
  readonly leftMs: number;
  readonly holder: Holder | undefined;
}

/** @param leftMs as PTTL says it: negative without an end */
export function parseNodeLease(leftMs: number, lease: string): NodeLease {
  const [owner = lease, token = '', , metadata = ''] = splitFields(lease, 4);
  const holder = unpackHolder(metadata, new Date(Number(token) / 1_000));
  const counted = /^\d+$/u.test(token) ? BigInt(token) : 0n;
  return { owner, token: counted, leftMs: leftMs < 0 ? Infinity : leftMs, holder };
}
