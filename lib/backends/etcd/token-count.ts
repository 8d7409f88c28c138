import type { EtcdClient } from './transport/client.js';
import type { EtcdLockNames } from './lock-names.js';
import type { KeyValue } from './transport/messages.js';

/**
 * The year 2096: a clock that shows more is wrong. Up to 2^52, where tokens end, there is room for 500 trillion
 * revisions.
 */
const LATEST_US = 4e15;

/**
 * Tokens are etcd's revisions, counted from the time at which its data began. So they grow on when all data was lost,
 * as revisions begin again then, unless the clock of whoever asks first is behind by more than the time since the
 * former beginning. Read together with the revision, never remembered: nobody knows of a loss in time.
 */
export class TokenCount {
  constructor(
    private readonly client: EtcdClient,
    private readonly names: EtcdLockNames,
  ) {}

  get key(): string {
    return this.names.countedFrom;
  }

  /** @throws Error when what `key` holds is no number */
  async tokenOf(revision: bigint, stored: KeyValue | undefined): Promise<bigint> {
    const { value } = stored ?? (await this.#begin());
    if (!/^\d{1,16}$/u.test(value)) {
      throw new Error(
        `${this.key} must hold a number, which fencing tokens are counted from: etcdctl del it, and it is made anew`,
      );
    }
    return BigInt(value) + revision;
  }

  /** Only the first one ever has its way. */
  async #begin(): Promise<KeyValue> {
    const nowUs = Math.min(Date.now() * 1_000, LATEST_US);
    const { found } = await this.client.transact({
      when: [{ key: this.key, createdAt: 0n }],
      steps: [{ put: this.key, value: String(nowUs), lease: 0n }, { get: this.key }],
      otherwise: [{ get: this.key }],
    });
    const begun = found.at(-1);
    if (!begun) throw new Error(`${this.key} could not be made`);
    return begun;
  }
}
