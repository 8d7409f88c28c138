import { randomUUID } from 'node:crypto';
import type { MemcachedDialect } from './dialect.js';
import { itemNames } from './item-names.js';
import { MemcachedError } from './error.js';
import type { ServerClock } from './server-clock.js';

const TTL_MS = 2_000;

/**
 * Tries all that locks rest on with an item of its own: an add, a write and a delete that compare cas ids, and a date
 * to expire on. Some servers take the commands and do not compare, such as memcached with -C.
 * @throws MemcachedError
 */
export async function probeCapabilities(
  dialect: MemcachedDialect,
  prefix: string,
  clock: ServerClock,
  now: number,
): Promise<void> {
  const expiresAt = clock.expiryAfter(TTL_MS, now);
  const names = itemNames(prefix, `probe ${randomUUID()}`);
  const value = 'probe';
  const { added, present } = await dialect.add(names.lease, value, expiresAt);
  if (!added || present?.value !== value) throw unfit('does not keep what it stores');
  if (present.remainingS !== undefined && present.remainingS * 1_000 < TTL_MS)
    throw unfit('does not keep items to their date');
  const other = String(BigInt(present.cas) - 1n || 2n);
  const [again, overwritten, deletedOther, deleted, left] = await Promise.all([
    dialect.add(names.lease, value, expiresAt),
    dialect.renew({ names, value: 'not to be', expiresAt }, other),
    dialect.remove(names.lease, other),
    dialect.remove(names.lease, present.cas),
    dialect.look(names.lease),
  ]);
  if (again.added) throw unfit('adds what is there already');
  if (overwritten?.value !== value || deletedOther) throw unfit('does not compare cas ids (is it started with -C?)');
  if (!deleted || left !== null) throw unfit('does not delete by cas id');
}

function unfit(why: string): MemcachedError {
  return new MemcachedError('protocol', `the server cannot keep locks: it ${why}`);
}
