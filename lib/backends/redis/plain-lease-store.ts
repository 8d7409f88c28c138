import {
  type BackendHealth,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  packHolder,
  unpackHolder,
} from '../../core/index.js';
import { isOwn, LockKeys, splitFields } from './lease-value.js';
import { microseconds } from './redis-reply.js';
import { COMPARE_AND_DELETE } from './redis-scripts.js';
import type { RedisServers } from './redis-servers.js';
import type { ReplicaCheck } from './replica-check.js';
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
  readonly #servers: RedisServers;
  readonly #replicas: ReplicaCheck;
  readonly #renewals: RenewalBatch;
  readonly #keys: LockKeys;

  constructor(servers: RedisServers, replicas: ReplicaCheck, prefix: string) {
    this.#servers = servers;
    this.#replicas = replicas;
    this.#renewals = new RenewalBatch(servers, replicas);
    this.#keys = new LockKeys(prefix);
  }

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const leaseKey = this.#keys.lease(key);
    const lease = `${owner}|${packHolder(metadata)}`;
    const [set, present, leftMs, time, copies] = await this.#servers.ask(
      leaseKey,
      ['SET', leaseKey, lease, 'NX', 'PX', Math.ceil(ttlMs)],
      ['GET', leaseKey],
      ['PTTL', leaseKey],
      ['TIME'],
      ...this.#replicas.requests,
    );
    if (set === 'OK') {
      this.#replicas.assert(copies);
      return { acquired: true, fencingToken: microseconds(time) };
    }
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

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = this.#keys.lease(key);
    const [lease] = await this.#servers.ask(leaseKey, ['GET', leaseKey]);
    return isOwn(lease, owner);
  }

  async release(key: string, owner: string): Promise<boolean> {
    const leaseKey = this.#keys.lease(key);
    const [deleted] = await this.#servers.ask(leaseKey, COMPARE_AND_DELETE.call([leaseKey], [owner]));
    return Number(deleted) === 1;
  }

  close(): Promise<void> {
    return this.#servers.close();
  }

  health(): BackendHealth {
    return this.#servers.health.current;
  }

  onHealthChange(listener: (health: BackendHealth) => void): () => void {
    return this.#servers.health.onChange(listener);
  }
}
