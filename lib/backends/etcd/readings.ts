import {
  parseClaim,
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

export async function readLeaseState({ client, names }: QueueAccess, key: string): Promise<LeaseState> {
  const { tokenOriginName } = names;
  const [entries = [], [tokenOriginEntry] = []] = await client.list(
    // The limit leaves room for holders, which are in the queue too.
    { ...names.queueRange(key), limit: 2 * MAX_WAITERS, by: 'age' },
    { key: tokenOriginName, end: `${tokenOriginName}\0`, limit: 1, by: 'age' },
  );
  const holderFlags = getHolderFlags(entries);
  const waitingEntries = entries.filter((_, index) => !holderFlags[index]);
  const waiters = waitingEntries.slice(0, MAX_WAITERS).map(describeOwner);
  const tokenOrigin = /^\d{1,16}$/u.test(tokenOriginEntry?.value ?? '')
    ? BigInt(tokenOriginEntry?.value ?? '')
    : undefined;
  const holders = entries
    .filter((_, index) => holderFlags[index])
    .map((entry) => ({
      ...describeOwner(entry),
      ...(tokenOrigin === undefined ? {} : { fencingToken: tokenOrigin + entry.createRevision }),
    }));
  const [holder] = holders;
  return { ...(holder ? { holder } : {}), ...(holders.length > 1 ? { holders } : {}), waiters };
}

/** Resolves to the entry by which `owner` holds the lock, or to `undefined` if `owner` does not hold it. */
export async function readHolderEntry(
  { client, names }: QueueAccess,
  key: string,
  owner: string,
): Promise<KeyValue | undefined> {
  const queue = names.queueRange(key);
  const isOwnersEntry = ({ value }: KeyValue): boolean => value.startsWith(`${getValuePrefix(owner)},`);
  if (isExclusive(owner)) {
    const { firstKeyValues } = await client.transact({ steps: [{ get: { ...queue, which: 'oldest' } }] });
    return firstKeyValues.find((entry) => entry !== undefined && isOwnersEntry(entry));
  }
  const [entries = []] = await client.list({ ...queue, by: 'age' });
  const holderFlags = getHolderFlags(entries);
  return entries.find((entry, index) => holderFlags[index] && isOwnersEntry(entry));
}

function getHolderFlags(entries: readonly KeyValue[]): boolean[] {
  return isHolderByIndex(entries.map(({ key }) => parseClaim(key)));
}

export function getValuePrefix(owner: string): string {
  return `{"owner":${JSON.stringify(owner)}`;
}

export async function* listKeys({ client, names }: QueueAccess, prefix: string): AsyncGenerator<readonly string[]> {
  let { key: start, end } = names.rangeOfPrefix(prefix);
  for (;;) {
    const [entries = []] = await client.list({ key: start, end, limit: NAMES_PER_PAGE, by: 'name' });
    const keys = new Set(entries.flatMap(({ key: name }) => names.parseKey(name) ?? []));
    yield [...keys];
    const lastEntry = entries.at(-1);
    if (!lastEntry || entries.length < NAMES_PER_PAGE) return;
    // The next page begins after all entries of the last key.
    const lastKey = names.parseKey(lastEntry.key);
    start = lastKey === undefined ? `${lastEntry.key}\0` : names.queueRange(lastKey).end;
  }
}

function describeOwner({ value }: KeyValue): KeyWaiter {
  const [, owner = ''] = /^\{"owner":"([^"\\]*)"/u.exec(value) ?? [];
  return { owner, ...unpackHolder(value) };
}
