import {
  type Asker,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  packHolder,
  unpackHolder,
} from '../../../core/index.js';
import { isOne, leaseKeyOf, microseconds, nobody, splitFields } from '../scripts/redis-values.js';
import type { RedisCommand } from '../connection/redis-client.js';
import { RedisLeaseStore } from '../lease-store.js';

type Present = ReturnType<typeof parse>;

/**
 * The scheme of `SETNX`, `GET` and `GETSET` (https://redis.io/docs/latest/commands/setnx/), for servers and proxies
 * without scripting. The lease is `expiry|ttl|owner|metadata`, its expiry a time of the server's clock.
 *
 * Its limits, which no care here can lift:
 * - `GETSET` and `DEL` compare no owners. One that the network delivers late hits the lease that is there by then.
 *   `GETSET` puts an expiry of the past over it, and the next caller finds it expired. Two believe that they hold the
 *   key, until the first fails to renew, which takes up to a third of the TTL. The other modes have no such gap.
 * - Two callers that find the same expired lease both write. The second learns so from the answer, but has overwritten
 *   the first, who loses the lock at its next renewal. The second waits for the end of the lease that it wrote.
 * - The expiry that stays is the second one's: all processes must use the same `ttlMs` for a key.
 * - A renewal or release looks first and then writes. The write must arrive while the lease lives: late, none is tried.
 * - A lease whose holder died stays on the server, expired, until the next acquisition.
 */
export class GetsetLeaseStore extends RedisLeaseStore implements LeaseStore {
  override readonly traits = { keepsOrder: false, writesUncompared: true };
  protected readonly commands = [];
  /** Owners that wrote over a lease which may be another's by now, and when the lease that they wrote ends. */
  readonly #doubtful = new Map<string, number>();

  /** A write counts on arriving within this time, while its lease lives. */
  get #marginMs(): number {
    return this.servers.timeoutMs / 4;
  }

  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const { now, present } = await this.#look(leaseKey, asker);
    const ours = present?.owner === owner && !this.#doubtful.has(owner);
    if (present && present.expiresAt > now && !ours) return refusal(now, present);
    const lease = pack(now, ttlMs, owner, packHolder(metadata));
    if (present) {
      // Until `GETSET` has answered that it was first, its owner's name on the key proves nothing.
      for (const [other, endsAt] of this.#doubtful) if (endsAt < now) this.#doubtful.delete(other);
      this.#doubtful.set(owner, now + ttlMs);
    }
    const write = present ? 'GETSET' : 'SETNX';
    const [before, time, copies] = await this.#write(leaseKey, [write, leaseKey, lease], ['TIME']);
    const won = present ? before === present.value : Number(before) === 1;
    if (!won) return { acquired: false, retryAfterMs: null };
    this.#doubtful.delete(owner);
    this.assertConfirmed(copies);
    return { acquired: true, fencingToken: microseconds(time) };
  }

  /** @throws when too little of the lease is left for a write to arrive in time */
  override async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const { now, present } = await this.#look(leaseKey);
    if (present?.owner !== owner) return false;
    if (present.expiresAt - now < Math.min(this.#marginMs, ttlMs / 10))
      throw new Error('the lease ends too soon to be renewed');
    const lease = pack(now, ttlMs, owner, present.metadata);
    const [before, copies] = await this.#write(leaseKey, ['GETSET', leaseKey, lease]);
    if (before !== present.value) return false;
    this.assertConfirmed(copies);
    return true;
  }

  override async isHeldBy(key: string, owner: string): Promise<boolean> {
    const { now, present } = await this.#look(leaseKeyOf(this.prefix, key));
    return present?.owner === owner && present.expiresAt > now;
  }

  async look(key: string): Promise<LeaseState> {
    const { now, present } = await this.#look(leaseKeyOf(this.prefix, key));
    if (!present || present.expiresAt <= now) return {};
    const { owner, expiresAt, metadata } = present;
    return { holder: { owner, leftMs: expiresAt - now, ...unpackHolder(metadata) } };
  }

  /** A lease that has expired is still there. */
  override async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    for await (const page of super.keys(prefix)) {
      const states = await Promise.all(page.map((key) => this.look(key)));
      yield page.filter((_, index) => states[index]?.holder);
    }
  }

  /** A lease that ends within a moment is left to end: a late `DEL` could hit the next owner's. */
  async release(key: string, owner: string): Promise<boolean> {
    if (this.#doubtful.has(owner)) return false;
    const leaseKey = leaseKeyOf(this.prefix, key);
    const { now, present } = await this.#look(leaseKey);
    if (present?.owner !== owner) return false;
    if (present.expiresAt - now >= Math.min(this.#marginMs, present.ttlMs / 3)) {
      await this.servers.ask(leaseKey, { requests: [['DEL', leaseKey]], read: isOne });
    }
    return present.expiresAt > now;
  }

  protected check(): Promise<unknown> {
    return this.#look(leaseKeyOf(this.prefix, nobody()));
  }

  #write(leaseKey: string, ...requests: readonly RedisCommand[]): Promise<readonly unknown[]> {
    return this.servers.ask(leaseKey, { requests, confirmation: this.confirmation, read: (replies) => replies });
  }

  /** With a write that changes nothing: a server that may not write must not tell who has the key either. */
  #look(leaseKey: string, asker?: Asker): Promise<{ now: number; present: Present | undefined }> {
    return this.servers.ask(leaseKey, {
      requests: [['TIME'], ['GET', leaseKey], ['DEL', `${leaseKey}:none`]],
      read: ([time, value]) => ({
        now: Number(microseconds(time)) / 1_000,
        present: typeof value === 'string' ? parse(value) : undefined,
      }),
      asker,
    });
  }
}

function refusal(now: number, present: Present): LeaseAttempt {
  const holder = unpackHolder(present.metadata);
  return { acquired: false, retryAfterMs: present.expiresAt - now, ...(holder ? { holder } : {}) };
}

function pack(now: number, ttlMs: number, owner: string, metadata: string): string {
  return `${Math.ceil(now + ttlMs)}|${Math.ceil(ttlMs)}|${owner}|${metadata}`;
}

/** A value that another program wrote never expires, because nobody may overwrite it. */
function parse(value: string) {
  const [expiry = '', ttl = '', owner = '', metadata = ''] = splitFields(value, 4);
  return { value, expiresAt: /^\d+$/u.test(expiry) ? Number(expiry) : Infinity, ttlMs: Number(ttl), owner, metadata };
}
