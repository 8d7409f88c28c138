import { randomUUID } from 'node:crypto';
import type { MemcachedDialect } from './dialect.js';
import { itemNames } from './item-names.js';
import { MemcachedError } from './error.js';
import type { ServerClock } from './server-clock.js';

const PROBE_TTL_MS = 2_000;

/**
 * Verifies the commands that locks need. Some servers accept these commands without comparing cas uniques, for example
 * memcached with -C.
 * @throws MemcachedError
 */
export async function probeCapabilities(
  dialect: MemcachedDialect,
  prefix: string,
  clock: ServerClock,
  now: number,
): Promise<void> {
  const exptime = clock.exptimeAfter(PROBE_TTL_MS, now);
  const names = itemNames(prefix, `probe ${randomUUID()}`);
  const value = 'probe';
  const { isAdded, item } = await dialect.addItem(names.lease, value, exptime);
  if (!isAdded || item?.value !== value) throw unfitError('does not keep what it stores');
  if (item.remainingS !== undefined && item.remainingS * 1_000 < PROBE_TTL_MS)
    throw unfitError('does not keep items to their date');
  // The wrong cas unique is never 0, because 0 is no cas unique.
  const wrongCas = String(BigInt(item.cas) - 1n || 2n);
  const [secondAdd, itemAfterWrongWrite, isDeletedByWrongCas, isDeleted, remainingItem] = await Promise.all([
    dialect.addItem(names.lease, value, exptime),
    dialect.replaceAndGetItem({ names, value: 'not to be', exptime }, wrongCas),
    dialect.deleteItem(names.lease, wrongCas),
    dialect.deleteItem(names.lease, item.cas),
    dialect.getItem(names.lease),
  ]);
  if (secondAdd.isAdded) throw unfitError('adds what is there already');
  if (itemAfterWrongWrite?.value !== value || isDeletedByWrongCas)
    throw unfitError('does not compare cas ids (is it started with -C?)');
  if (!isDeleted || remainingItem !== null) throw unfitError('does not delete by cas id');
}

function unfitError(problem: string): MemcachedError {
  return new MemcachedError('protocol', `the server cannot keep locks: it ${problem}`);
}
