import {
  type Asker,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  packHolder,
  unpackHolder,
} from '../../../core/index.js';
import { isOwn, LockKeys, nobody, splitFields } from '../scripts/lease-value.js';
import { asList, isOne, microseconds } from '../scripts/redis-reply.js';
import { COMPARE_AND_DELETE, RENEW, SET_IF_FREE } from '../scripts/queue-scripts.js';
import type { RedisServers } from '../connection/redis-servers.js';
import type { ReplicaCheck } from '../connection/replica-check.js';

/**
 * The lock of the textbook, `SET key owner NX PX ttl`, with nothing else on the server and waiters that poll. Release and
 * renewal compare the owner.
 *
 * The token is the server's clock, read in one step with the `SET`, hence before the next owner's. So tokens grow as long as
 * the server's clock does: one that is set back repeats them, since nothing here remembers the last.
 */
export class PlainLeaseStore implements LeaseStore {
  readonly name = 'redis';
  readonly guarantee = 'best-effort';
  readonly keepsOrder = true;
  readonly #servers: RedisServers;
  readonly #replicas: ReplicaCheck;
  readonly #keys: LockKeys;

  constructor(servers: RedisServers, replicas: ReplicaCheck, prefix: string) {
    this.#servers = servers;
    this.#replicas = replicas;
    this.#keys = new LockKeys(prefix);
  }

  start(): Promise<void> {
    return this.#servers.start(() => this.release(nobody(), nobody()));
  }

  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const leaseKey = this.#keys.lease(key);
    const lease = `${owner}|${packHolder(metadata)}`;
    const take = SET_IF_FREE.call([leaseKey], [lease, Math.ceil(ttlMs)]);
    const [reply, copies] = await this.#servers.askFor(asker, leaseKey, take, ...this.#replicas.requests);
    const [set, time, present, leftMs] = asList(reply);
    if (Number(set) === 1) {
      this.#replicas.assert(copies);
      return { acquired: true, fencingToken: microseconds(time) };
    }
    const [holderOwner, holderMetadata = ''] = splitFields(String(present), 2) ?? [];
    // A lost answer: the first token was never seen by anybody, so a newer one does.
    const ours = holderOwner === owner && (await this.renew(key, owner, ttlMs));
    if (ours) return { acquired: true, fencingToken: microseconds(time) };
    const holder = unpackHolder(holderMetadata);
    const retryAfterMs = Number(leftMs) < 0 ? null : Number(leftMs);
    return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
  }

  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const leaseKey = this.#keys.lease(key);
    const call = RENEW.call([leaseKey], [owner, Math.ceil(ttlMs)]);
    const [answer, copies] = await this.#servers.ask(leaseKey, call, ...this.#replicas.requests);
    if (Number(answer) !== 1) return false;
    this.#replicas.assert(copies);
    return true;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = this.#keys.lease(key);
    const [lease] = await this.#servers.ask(leaseKey, ['GET', leaseKey]);
    return isOwn(lease, owner);
  }

  release(key: string, owner: string): Promise<boolean> {
    const leaseKey = this.#keys.lease(key);
    return this.#servers.ask(leaseKey, COMPARE_AND_DELETE.call([leaseKey], [owner])).then(isOne);
  }

  close(): Promise<void> {
    return this.#servers.close();
  }

  get health(): HealthSource {
    return this.#servers.health;
  }
}
