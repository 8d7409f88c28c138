import type { EtcdClient } from './transport/client.js';
import type { KeyValue } from './transport/messages.js';

/**
 * Maximum origin in microseconds since 1970, a time in 2096. A clock that shows more is wrong. The distance to 2^52,
 * where tokens end, leaves room for 500 trillion revisions.
 */
const MAX_ORIGIN_US = 4e15;

/**
 * Returns the fencing token of a revision: the revision plus the time at which etcd's data began. Tokens keep growing
 * when all data is lost and revisions start again, unless the clock of the first process is behind the earlier origin.
 * The origin is read together with the revision and never cached, because no process learns of a loss in time.
 * @param originEntry the entry of `originKey` as it was read with the revision; `undefined` where there was none
 * @throws Error when the value is no number
 */
export async function toFencingToken(
  revision: bigint,
  originEntry: KeyValue | undefined,
  originKey: string,
  client: EtcdClient,
): Promise<bigint> {
  const { value } = originEntry ?? (await storeOrigin(originKey, client));
  if (/^\d{1,16}$/u.test(value)) return BigInt(value) + revision;
  throw new Error(
    `${originKey} must hold a number, which fencing tokens are counted from: etcdctl del it, and it is made anew`,
  );
}

/** Stores the current time as the origin, unless another process has stored one. Returns the origin that is stored. */
async function storeOrigin(originKey: string, client: EtcdClient): Promise<KeyValue> {
  const nowUs = Math.min(Date.now() * 1_000, MAX_ORIGIN_US);
  const { results } = await client.transact({
    when: [{ key: originKey, createdAt: 0n }],
    steps: [{ put: originKey, value: String(nowUs), lease: 0n }, { get: originKey }],
    otherwise: [{ get: originKey }],
  });
  const origin = results.at(-1);
  if (!origin) throw new Error(`${originKey} could not be made`);
  return origin;
}
