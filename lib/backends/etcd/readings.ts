import {
  claimOf,
  holding,
  isExclusive,
  type KeyWaiter,
  type LeaseState,
  MAX_WAITERS,
  unpackHolder,
} from '../../core/index.js';
import type { QueueEntrySettings } from './queue-entry.js';
import type { KeyValue } from './transport/messages.js';

type Settings = Pick<QueueEntrySettings, 'client' | 'names'>;

const NAMES_A_PAGE = 1_000;

/** Who has `key` and who waits, by one reading. */
export async function readState({ client, names }: Settings, key: string): Promise<LeaseState> {
  const counted = names.countedFrom;
  const [line = [], [countedFrom] = []] = await client.list(
    { ...names.queue(key), limit: 2 * MAX_WAITERS, by: 'age' },
    { key: counted, end: `${counted}\0`, limit: 1, by: 'age' },
  );
  const holds = holdingIn(line);
  const waiting = line.filter((_, index) => !holds[index]);
  const waiters = waiting.slice(0, MAX_WAITERS).map(described);
  const from = /^\d{1,16}$/u.test(countedFrom?.value ?? '') ? BigInt(countedFrom?.value ?? '') : undefined;
  const holders = line
    .filter((_, index) => holds[index])
    .map((kv) => ({ ...described(kv), ...(from === undefined ? {} : { fencingToken: from + kv.createdAt }) }));
  const [holder] = holders;
  return { ...(holder ? { holder } : {}), ...(holders.length > 1 ? { holders } : {}), waiters };
}

/** The entry by which `owner` has `key`. */
export async function readHeld({ client, names }: Settings, key: string, owner: string): Promise<KeyValue | undefined> {
  const queue = names.queue(key);
  const isOwners = ({ value }: KeyValue): boolean => value.startsWith(`${startOf(owner)},`);
  if (isExclusive(owner)) {
    const { found } = await client.transact({ steps: [{ get: { ...queue, which: 'oldest' } }] });
    return found.find((kv) => kv !== undefined && isOwners(kv));
  }
  const [line = []] = await client.list({ ...queue, by: 'age' });
  const holds = holdingIn(line);
  return line.find((kv, index) => holds[index] && isOwners(kv));
}

function holdingIn(line: readonly KeyValue[]): boolean[] {
  return holding(line.map(({ key }) => claimOf(key)));
}

/** How the value of an owner's entry begins. */
export function startOf(owner: string): string {
  return `{"owner":${JSON.stringify(owner)}`;
}

/** The keys that somebody holds, in the order of their names: each page goes on after the last key of the one before. */
export async function* listKeys({ client, names }: Settings, prefix: string): AsyncGenerator<readonly string[]> {
  let { key: from, end } = names.beginningWith(prefix);
  for (;;) {
    const [found = []] = await client.list({ key: from, end, limit: NAMES_A_PAGE, by: 'name' });
    const keys = new Set(found.flatMap(({ key: name }) => names.keyOf(name) ?? []));
    yield [...keys];
    const last = found.at(-1);
    if (!last || found.length < NAMES_A_PAGE) return;
    const key = names.keyOf(last.key);
    from = key === undefined ? `${last.key}\0` : names.queue(key).end;
  }
}

function described({ value }: KeyValue): KeyWaiter {
  const [, owner = ''] = /^\{"owner":"([^"\\]*)"/u.exec(value) ?? [];
  return { owner, ...unpackHolder(value) };
}
