import { type Holder, type KeyHolder, type KeyWaiter, type LeaseState, unpackHolder } from '../../../core/index.js';
import { asList, splitFields } from '../scripts/redis-values.js';

/** Returns the state of a key by the answer of the script `LOOK`. */
export function stateOf(reply: unknown): LeaseState {
  const [lease, left, now, shares, line] = asList(reply);
  const waiters = asList(line).flatMap((entry) => waiterOf(String(entry)));
  if (typeof lease !== 'string') return { waiters };
  if (!lease.startsWith('|')) return { holder: described(lease, Number(left)), waiters };
  const holders = sharersIn(asList(shares), Number(now));
  const [holder] = holders;
  return { ...(holder ? { holder } : {}), ...(holders.length > 1 ? { holders } : {}), waiters };
}

/** First come first. @param shares owners and values by turns */
function sharersIn(shares: readonly unknown[], nowMs: number): KeyHolder[] {
  const sharers = shares.flatMap((owner, at) => {
    if (at % 2 === 1) return [];
    const [ends, ...lease] = String(shares[at + 1]).split('|');
    const leftMs = Number(ends) - nowMs;
    return leftMs > 0 ? [described([owner, ...lease].join('|'), leftMs)] : [];
  });
  return sharers.toSorted((a, b) => Number((a.fencingToken ?? 0n) - (b.fencingToken ?? 0n)));
}

function described(lease: string, leftMs: number): KeyHolder {
  const [owner = '', token = ''] = lease.split('|', 2);
  const fencingToken = /^\d+$/u.test(token) ? { fencingToken: BigInt(token) } : {};
  return { owner, ...fencingToken, ...(leftMs < 0 ? {} : { leftMs }), ...holderOf(lease) };
}

/** Returns the waiter of an entry in the line, or none where the queue passes over it. */
function waiterOf(entry: string): KeyWaiter[] {
  const [owner = '', , seen = '', , metadata = ''] = splitFields(entry, 5);
  return Number(seen) > 0 ? [{ owner, ...unpackHolder(metadata) }] : [];
}

/** The token is the server's clock in microseconds at the time of the grant, or hardly more. */
export function holderOf(lease: string): Holder | undefined {
  const [, token = '', metadata = ''] = splitFields(lease, 3);
  return unpackHolder(metadata, new Date(Number(token) / 1_000));
}
