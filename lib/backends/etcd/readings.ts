import { type KeyWaiter, type LeaseState, MOST_WAITERS, unpackHolder } from '../../core/index.js';
import type { QueueEntrySettings } from './queue-entry.js';
import type { KeyValue } from './transport/messages.js';

type Settings = Pick<QueueEntrySettings, 'client' | 'names'>;

const NAMES_A_PAGE = 1_000;

/** Who has `key` and who waits, by one reading. */
export async function readState({ client, names }: Settings, key: string): Promise<LeaseState> {
  const counted = names.countedFrom;
  const [line = [], [countedFrom] = []] = await client.list(
    { ...names.queue(key), limit: MOST_WAITERS + 1, by: 'age' },
    { key: counted, end: `${counted}\0`, limit: 1, by: 'age' },
  );
  const [first, ...others] = line;
  const waiters = others.map(described);
  if (!first) return { waiters };
  const isCounted = /^\d{1,16}$/u.test(countedFrom?.value ?? '');
  const token = isCounted ? { fencingToken: BigInt(countedFrom?.value ?? '') + first.createdAt } : {};
  return { holder: { ...described(first), ...token }, waiters };
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
