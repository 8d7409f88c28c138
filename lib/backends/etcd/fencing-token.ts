import type { EtcdClient } from './transport/client.js';
import type { KeyValue } from './transport/messages.js';

/** The year 2096: a later clock is wrong. Up to 2^52, where tokens end, there is room for 500 trillion revisions. */
const LATEST_US = 4e15;

/**
 * Tokens are etcd's revisions, counted from the time at which its data began. They grow on when all data was lost and
 * revisions begin again, unless the clock of the first to ask is behind the former beginning. The beginning is read
 * together with the revision and never remembered: nobody knows of a loss in time.
 * @param key holds the beginning
 * @param stored what was read of `key`
 * @throws Error when it holds no number
 */
export async function fencingTokenOf(
  revision: bigint,
  stored: KeyValue | undefined,
  key: string,
  client: EtcdClient,
): Promise<bigint> {
  const { value } = stored ?? (await begin(key, client));
  if (/^\d{1,16}$/u.test(value)) return BigInt(value) + revision;
  throw new Error(
    `${key} must hold a number, which fencing tokens are counted from: etcdctl del it, and it is made anew`,
  );
}

/** Only the first process ever has its way. */
async function begin(key: string, client: EtcdClient): Promise<KeyValue> {
  const nowUs = Math.min(Date.now() * 1_000, LATEST_US);
  const { found } = await client.transact({
    when: [{ key, createdAt: 0n }],
    steps: [{ put: key, value: String(nowUs), lease: 0n }, { get: key }],
    otherwise: [{ get: key }],
  });
  const begun = found.at(-1);
  if (!begun) throw new Error(`${key} could not be made`);
  return begun;
}
