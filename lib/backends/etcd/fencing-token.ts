import type { EtcdClient } from './transport/client.js';
import type { KeyValue } from './transport/messages.js';

/**
 * Maximum origin in microseconds since 1970: the year 2096, which no correct clock shows. It leaves room for 500
 * trillion revisions below 2^52, where tokens end.
 */
const MAX_ORIGIN_US = 4e15;

/**
 * Returns the revision plus the origin: the time of the first grant in etcd's data, in microseconds since 1970. Tokens
 * grow even after a loss of all data, unless the next origin comes from a clock that is behind.
 * The origin is read with every revision and never cached, because no process learns of such a loss in time.
 * @param originEntry entry of `originKey` as of that revision; `undefined` when missing
 * @throws Error when the value is no number
 */
export async function toFencingToken(
  revision: bigint,
  originEntry: KeyValue | undefined,
  originKey: string,
  client: EtcdClient,
): Promise<bigint> {
  const { value } = originEntry ?? (await getOrStoreOrigin(originKey, client));
  if (/^\d{1,16}$/u.test(value)) return BigInt(value) + revision;
  throw new Error(
    `${originKey} must hold a number, which fencing tokens are counted from: etcdctl del it, and it is made anew`,
  );
}

async function getOrStoreOrigin(originKey: string, client: EtcdClient): Promise<KeyValue> {
  const nowUs = Math.min(Date.now() * 1_000, MAX_ORIGIN_US);
  const { firstKeyValues } = await client.transact({
    when: [{ key: originKey, createRevision: 0n }],
    steps: [{ put: originKey, value: String(nowUs), lease: 0n }, { get: originKey }],
    otherwise: [{ get: originKey }],
  });
  const origin = firstKeyValues.at(-1);
  if (!origin) throw new Error(`${originKey} could not be made`);
  return origin;
}
