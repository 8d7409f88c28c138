import {
  type BackendHealth,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  packMetadata,
  unpackHolder,
} from '../../core/index.js';
import { LockKeys, splitFields } from './lease-value.js';
import type { RedisConnection } from './redis-connection.js';
import { microseconds } from './redis-reply.js';
import { COMPARE_AND_DELETE } from './redis-scripts.js';
import { RenewalBatch } from './renewal-batch.js';

/**
 * The lock of the textbook, `SET key owner NX PX ttl`, with nothing else on the server and waiters that poll. Release and
 * renewal compare the owner in a script.
 *
 * The token is the server's clock, read in the same write after the `SET`. If that was later than the lease, so is the answer,
 * and it is discarded; if not, the clock was read while the key was ours, hence before the next owner's `SET` and clock. So
 * tokens grow as long as the server's clock does: one that is set back repeats them, since nothing here remembers the last.
 */
export class PlainLeaseStore implements LeaseStore {
  readonly name = 'redis';
  readonly guarantee = 'best-effort';
  readonly #connection: RedisConnection;
  readonly #renewals: RenewalBatch;
  readonly #keys: LockKeys;

  constructor(connection: RedisConnection, prefix: string) {
    this.#connection = connection;
    this.#renewals = new RenewalBatch(connection);
    this.#keys = new LockKeys(prefix);
  }

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const leaseKey = this.#keys.lease(key);
    const lease = `${owner}|${packMetadata(metadata)}`;
    const [set, present, leftMs, time] = await Promise.all([
      this.#connection.send('SET', leaseKey, lease, 'NX', 'PX', Math.ceil(ttlMs)),
      this.#connection.send('GET', leaseKey),
      this.#connection.send('PTTL', leaseKey),
      this.#connection.send('TIME'),
    ]);
    if (set === 'OK') return { acquired: true, fencingToken: microseconds(time) };
    if (typeof present !== 'string') return { acquired: false, retryAfterMs: 0 };
    const [holderOwner, holderMetadata = ''] = splitFields(present, 2) ?? [];
    // A lost answer: the first token was never seen by anybody, so the newer one does.
    const ours = holderOwner === owner && (await this.renew(key, owner, ttlMs));
    if (ours) return { acquired: true, fencingToken: microseconds(time) };
    const holder = unpackHolder(holderMetadata);
    const retryAfterMs = Number(leftMs) < 0 ? null : Number(leftMs);
    return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#renewals.renew(this.#keys.lease(key), owner, ttlMs);
  }

  async release(key: string, owner: string): Promise<boolean> {
    return Number(await this.#connection.run(COMPARE_AND_DELETE, [this.#keys.lease(key)], [owner])) === 1;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  health(): BackendHealth {
    return this.#connection.health.current;
  }

  onHealthChange(listener: (health: BackendHealth) => void): () => void {
    return this.#connection.health.onChange(listener);
  }
}
