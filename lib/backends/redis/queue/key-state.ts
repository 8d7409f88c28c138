import { type Holder, type KeyHolder, type KeyWaiter, type LeaseState, unpackHolder } from '../../../core/index.js';
import { asList, splitFields } from '../scripts/redis-values.js';

export function parseKeyState(reply: unknown): LeaseState {
  const [lease, leftMs, nowMs, shares, queue] = asList(reply);
  const waiters = asList(queue).flatMap((entry) => parseWaiter(String(entry)));
  if (typeof lease !== 'string') return { waiters };
  // A lease with shares begins with a bar, because it has no owner of its own.
  if (!lease.startsWith('|')) return { holder: keyHolderOf(lease, Number(leftMs)), waiters };
  const holders = parseShares(asList(shares), Number(nowMs));
  const [holder] = holders;
  return { ...(holder ? { holder } : {}), ...(holders.length > 1 ? { holders } : {}), waiters };
}

/** @param ownersAndShares an owner, its share, the next owner, its share, and so on */
function parseShares(ownersAndShares: readonly unknown[], nowMs: number): KeyHolder[] {
  const holders = ownersAndShares.flatMap((owner, index) => {
    if (index % 2 === 1) return [];
    const [endsAt, ...tokenAndMetadata] = String(ownersAndShares[index + 1]).split('|');
    const leftMs = Number(endsAt) - nowMs;
    return leftMs > 0 ? [keyHolderOf([owner, ...tokenAndMetadata].join('|'), leftMs)] : [];
  });
  return holders.toSorted((a, b) => Number((a.fencingToken ?? 0n) - (b.fencingToken ?? 0n)));
}

function keyHolderOf(lease: string, leftMs: number): KeyHolder {
  const [owner = '', token = ''] = lease.split('|', 2);
  const fencingToken = /^\d+$/u.test(token) ? { fencingToken: BigInt(token) } : {};
  return { owner, ...fencingToken, ...(leftMs < 0 ? {} : { leftMs }), ...holderOf(lease) };
}

/** Returns a list with the waiter of `owner|channel|seen|ttl|metadata`; `[]` for a waiter that the queue skips. */
function parseWaiter(entry: string): KeyWaiter[] {
  const [owner = '', , seenAt = '', , metadata = ''] = splitFields(entry, 5);
  return Number(seenAt) > 0 ? [{ owner, ...unpackHolder(metadata) }] : [];
}

/** Returns the holder of a lease `owner|token|metadata`. Its token is about the time of the grant in microseconds. */
export function holderOf(lease: string): Holder | undefined {
  const [, token = '', metadata = ''] = splitFields(lease, 3);
  return unpackHolder(metadata, new Date(Number(token) / 1_000));
}
