import {
  claimOfOwner,
  isHolderByIndex,
  isExclusive,
  type KeyWaiter,
  type LeaseState,
  MAX_WAITERS,
  unpackHolder,
} from '../../core/index.js';
import type { QueueEntryContext } from './queue-entry.js';
import type { KeyValue } from './transport/messages.js';

type QueueAccess = Pick<QueueEntryContext, 'client' | 'names'>;

const NAMES_PER_PAGE = 1_000;

/** Returns who holds `key` and who waits, by one reading. */
export async function readState({ client, names }: QueueAccess, key: string): Promise<LeaseState> {
  const { tokenOriginName } = names;
  const [entries = [], [tokenOriginEntry] = []] = await client.list(
    { ...names.queueRange(key), limit: 2 * MAX_WAITERS, by: 'age' },
    { key: tokenOriginName, end: `${tokenOriginName}\0`, limit: 1, by: 'age' },
  );
  const isHolderAtIndex = findHoldersByIndex(entries);
  const waiting = entries.filter((_, index) => !isHolderAtIndex[index]);
  const waiters = waiting.slice(0, MAX_WAITERS).map(describeOwner);
  const tokenOrigin = /^\d{1,16}$/u.test(tokenOriginEntry?.value ?? '')
    ? BigInt(tokenOriginEntry?.value ?? '')
    : undefined;
  const holders = entries
    .filter((_, index) => isHolderAtIndex[index])
    .map((entry) => ({
      ...describeOwner(entry),
      ...(tokenOrigin === undefined ? {} : { fencingToken: tokenOrigin + entry.createdAt }),
    }));
  const [holder] = holders;
  return { ...(holder ? { holder } : {}), ...(holders.length > 1 ? { holders } : {}), waiters };
}

/** Returns the entry by which `owner` holds `key`; `undefined` when the owner does not. */
export async function readHolderEntry(
  { client, names }: QueueAccess,
  key: string,
  owner: string,
): Promise<KeyValue | undefined> {
  const queue = names.queueRange(key);
  const isOwnersEntry = ({ value }: KeyValue): boolean => value.startsWith(`${valuePrefix(owner)},`);
  if (isExclusive(owner)) {
    const { results } = await client.transact({ steps: [{ get: { ...queue, which: 'oldest' } }] });
    return results.find((entry) => entry !== undefined && isOwnersEntry(entry));
  }
  const [entries = []] = await client.list({ ...queue, by: 'age' });
  const isHolderAtIndex = findHoldersByIndex(entries);
  return entries.find((entry, index) => isHolderAtIndex[index] && isOwnersEntry(entry));
}

/** Returns for each entry of a queue, by its index, whether it holds the key. */
function findHoldersByIndex(entries: readonly KeyValue[]): boolean[] {
  return isHolderByIndex(entries.map(({ key }) => claimOfOwner(key)));
}

/** Returns the start of the value of an owner's entry. */
export function valuePrefix(owner: string): string {
  return `{"owner":${JSON.stringify(owner)}`;
}

/**
 * Yields the keys that are held, in the order of their names. Each page starts after the last key of the page before.
 */
export async function* listKeys({ client, names }: QueueAccess, prefix: string): AsyncGenerator<readonly string[]> {
  let { key: start, end } = names.rangeOfPrefix(prefix);
  for (;;) {
    const [results = []] = await client.list({ key: start, end, limit: NAMES_PER_PAGE, by: 'name' });
    const keys = new Set(results.flatMap(({ key: name }) => names.parseKey(name) ?? []));
    yield [...keys];
    const last = results.at(-1);
    if (!last || results.length < NAMES_PER_PAGE) return;
    const key = names.parseKey(last.key);
    start = key === undefined ? `${last.key}\0` : names.queueRange(key).end;
  }
}

function describeOwner({ value }: KeyValue): KeyWaiter {
  const [, owner = ''] = /^\{"owner":"([^"\\]*)"/u.exec(value) ?? [];
  return { owner, ...unpackHolder(value) };
}
