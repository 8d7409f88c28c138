import {
  type Caller,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  packHolder,
  unpackHolder,
  type StoreTraits,
} from '../../../core/index.js';
import { createUnusedName, isFirstReplyOne, leaseKeyOf, splitFields, toMicroseconds } from '../scripts/redis-values.js';
import type { RedisCommand } from '../connection/redis-client.js';
import { RedisLeaseStore } from '../lease-store.js';

type Lease = ReturnType<typeof parseLease>;

/** Lease of a key, perhaps an expired one, and the server's time at which it was read. */
interface LeaseReading {
  readonly nowMs: number;
  readonly lease: Lease | undefined;
}

/**
 * A store for servers and proxies without scripting, by `SETNX`, `GET` and `GETSET`
 * (https://redis.io/docs/latest/commands/setnx/). The lease is `expiry|ttl|owner|metadata`, with an expiry by the clock
 * of the server.
 *
 * The commands have limits that no client can remove:
 * - `GETSET` and `DEL` compare no owners: a command that the network delivers late replaces or deletes another owner's
 *   lease. A late `GETSET` writes an expiry of the past, and the next caller acquires the key. Two owners then hold the
 *   key until the renewal of the first fails, after up to a third of the TTL. Other modes have no such gap.
 * - Two callers that find the same expired lease both write. The second learns from the reply that it came too late,
 *   but has overwritten the lease of the first. The first then loses the lock at its next renewal, and the second waits
 *   until the lease that it wrote ends.
 * - The lease that the second caller wrote has the second caller's expiry: all processes must use the same `ttlMs` for
 *   a key.
 * - A renewal or release reads first, and writes only if enough of the lease is left for the write to arrive in time.
 * - The lease of a holder that died stays on the server, expired, until the next acquisition.
 */
export class GetsetLeaseStore extends RedisLeaseStore implements LeaseStore {
  override readonly traits = { keepsOrder: false, writesWithoutOwnerCheck: true } satisfies StoreTraits;
  protected readonly scriptCommands = [];
  /**
   * Ends of leases that a `GETSET` may have written, by owner, until a reply proves the acquisition. The owner may have
   * overwritten the lease of another owner.
   */
  readonly #unprovenLeaseEndByOwner = new Map<string, number>();

  /**
   * Time that a write may take to arrive. A lease that ends sooner is neither renewed nor deleted. For short TTLs a
   * share of the TTL is the limit.
   */
  get #maxWriteDelayMs(): number {
    return this.servers.timeoutMs / 4;
  }

  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const { nowMs, lease } = await this.#readLease(leaseKey, caller);
    const isProvenOwnLease = lease?.owner === owner && !this.#unprovenLeaseEndByOwner.has(owner);
    if (lease && lease.expiresAt > nowMs && !isProvenOwnLease) return toRefusal(lease, nowMs);
    const newLease = packLease(nowMs, ttlMs, owner, packHolder(metadata));
    if (lease) {
      // Only a reply with the expired lease proves that the `GETSET` has overwritten no newer lease.
      for (const [unprovenOwner, endsAt] of this.#unprovenLeaseEndByOwner)
        if (endsAt < nowMs) this.#unprovenLeaseEndByOwner.delete(unprovenOwner);
      this.#unprovenLeaseEndByOwner.set(owner, nowMs + ttlMs);
    }
    const command = lease ? 'GETSET' : 'SETNX';
    const [reply, time, replicaCount] = await this.#write(leaseKey, [command, leaseKey, newLease], ['TIME']);
    const isAcquired = lease ? reply === lease.value : Number(reply) === 1;
    if (!isAcquired) return { acquired: false, retryAfterMs: null };
    this.#unprovenLeaseEndByOwner.delete(owner);
    this.assertReplicated(replicaCount);
    return { acquired: true, fencingToken: toMicroseconds(time) };
  }

  /** @throws when too little of the lease is left for a write to arrive in time */
  override async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const { nowMs, lease } = await this.#readLease(leaseKey);
    if (lease?.owner !== owner) return false;
    if (lease.expiresAt - nowMs < Math.min(this.#maxWriteDelayMs, ttlMs / 10))
      throw new Error('the lease ends too soon to be renewed');
    const newLease = packLease(nowMs, ttlMs, owner, lease.metadata);
    const [previousValue, replicaCount] = await this.#write(leaseKey, ['GETSET', leaseKey, newLease]);
    if (previousValue !== lease.value) return false;
    this.assertReplicated(replicaCount);
    return true;
  }

  override async isHeldBy(key: string, owner: string): Promise<boolean> {
    const { nowMs, lease } = await this.#readLease(leaseKeyOf(this.prefix, key));
    return lease?.owner === owner && lease.expiresAt > nowMs;
  }

  async look(key: string): Promise<LeaseState> {
    const { nowMs, lease } = await this.#readLease(leaseKeyOf(this.prefix, key));
    if (!lease || lease.expiresAt <= nowMs) return {};
    const { owner, expiresAt, metadata } = lease;
    return { holder: { owner, leftMs: expiresAt - nowMs, ...unpackHolder(metadata) } };
  }

  override async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    for await (const page of super.keys(prefix)) {
      const states = await Promise.all(page.map((key) => this.look(key)));
      yield page.filter((_, index) => states[index]?.holder);
    }
  }

  /** Deletes the lease, unless it ends soon: a late `DEL` could delete the next owner's lease. */
  async release(key: string, owner: string): Promise<boolean> {
    if (this.#unprovenLeaseEndByOwner.has(owner)) return false;
    const leaseKey = leaseKeyOf(this.prefix, key);
    const { nowMs, lease } = await this.#readLease(leaseKey);
    if (lease?.owner !== owner) return false;
    if (lease.expiresAt - nowMs >= Math.min(this.#maxWriteDelayMs, lease.ttlMs / 3)) {
      await this.servers.send(leaseKey, { commands: [['DEL', leaseKey]], read: isFirstReplyOne });
    }
    return lease.expiresAt > nowMs;
  }

  /** Sends all commands of this mode, so that `start` fails if the user lacks a right. */
  protected probeServer(): Promise<unknown> {
    const key = leaseKeyOf(this.prefix, createUnusedName());
    return this.#write(key, ['TIME'], ['SETNX', key, ''], ['GET', key], ['GETSET', key, ''], ['DEL', key]);
  }

  #write(leaseKey: string, ...commands: readonly RedisCommand[]): Promise<readonly unknown[]> {
    return this.servers.send(leaseKey, { commands, confirmation: this.confirmation, read: (replies) => replies });
  }

  /** Also deletes a key that never exists. A replica refuses the DEL, so that its old data cannot name a holder. */
  #readLease(leaseKey: string, caller?: Caller): Promise<LeaseReading> {
    return this.servers.send(leaseKey, {
      commands: [['TIME'], ['GET', leaseKey], ['DEL', `${leaseKey}:none`]],
      read: ([time, value]) => ({
        nowMs: Number(toMicroseconds(time)) / 1_000,
        lease: typeof value === 'string' ? parseLease(value) : undefined,
      }),
      caller,
    });
  }
}

function toRefusal(lease: Lease, nowMs: number): LeaseAttempt {
  const holder = unpackHolder(lease.metadata);
  return { acquired: false, retryAfterMs: lease.expiresAt - nowMs, ...(holder ? { holder } : {}) };
}

function packLease(nowMs: number, ttlMs: number, owner: string, metadata: string): string {
  return `${Math.ceil(nowMs + ttlMs)}|${Math.ceil(ttlMs)}|${owner}|${metadata}`;
}

/** Parses a lease. A value of another program is read as a lease without an end, because it must not be overwritten. */
function parseLease(value: string) {
  const [expiry = '', ttl = '', owner = '', metadata = ''] = splitFields(value, 4);
  return { value, expiresAt: /^\d+$/u.test(expiry) ? Number(expiry) : Infinity, ttlMs: Number(ttl), owner, metadata };
}
