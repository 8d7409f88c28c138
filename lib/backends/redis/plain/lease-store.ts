import {
  type Asker,
  type Holder,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  ownMetadata,
  packHolder,
  unpackHolder,
} from '../../../core/index.js';
import { CHECK_TTL_MS, RedisLeaseStore } from '../lease-store.js';
import { COMPARE_AND_DELETE, SET_IF_FREE } from '../scripts/lease-scripts.js';
import { asList, isOne, isOwn, leaseKeyOf, microseconds, nobody, splitFields } from '../scripts/redis-values.js';

/**
 * The lock of the textbook, `SET key owner NX PX ttl`, with nothing else on the server and waiters that poll. Release
 * and renewal compare the owner.
 *
 * The token is the server's clock, read in one step with the `SET`, hence before the next owner's. Tokens grow as long
 * as the server's clock does. A clock that is set back repeats them, since nothing here remembers the last.
 */
export class PlainLeaseStore extends RedisLeaseStore implements LeaseStore {
  protected readonly commands = ['SET', 'GET', 'TIME', 'PTTL', 'PEXPIRE', 'DEL'];

  tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const lease = `${owner}|${packHolder(metadata)}`;
    return this.servers.ask(leaseKey, {
      requests: [{ script: SET_IF_FREE, keys: [leaseKey], args: [lease, Math.ceil(ttlMs)] }],
      confirmation: this.confirmation,
      read: ([reply, copies]) => {
        const [set, time, present, leftMs] = asList(reply);
        const granted: LeaseAttempt = { acquired: true, fencingToken: microseconds(time) };
        if (Number(set) === 1) {
          this.assertConfirmed(copies);
          return granted;
        }
        const refusal = refusalBy(String(present), Number(leftMs));
        if (!isOwn(present, owner)) return refusal;
        // An answer was lost. Nobody has seen its token, and a newer one serves as well.
        return this.renew(key, owner, ttlMs).then((isOurs) => (isOurs ? granted : refusal));
      },
      asker,
    });
  }

  look(key: string): Promise<LeaseState> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const requests = [
      ['GET', leaseKey],
      ['PTTL', leaseKey],
    ] as const;
    return this.servers.ask(leaseKey, {
      requests,
      read: ([lease, left]) => (typeof lease === 'string' ? { holder: described(lease, Number(left)) } : {}),
    });
  }

  protected async check(): Promise<void> {
    const [key, owner] = [nobody(), nobody()];
    await Promise.all([
      this.tryAcquire(key, owner, CHECK_TTL_MS, ownMetadata(undefined)),
      this.renew(key, owner, CHECK_TTL_MS),
      this.release(key, owner),
    ]);
  }

  release(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const requests = [{ script: COMPARE_AND_DELETE, keys: [leaseKey], args: [owner] }];
    return this.servers.ask(leaseKey, { requests, read: isOne });
  }
}

function described(lease: string, leftMs: number) {
  const [owner = ''] = lease.split('|', 1);
  return { owner, ...(leftMs < 0 ? {} : { leftMs }), ...holderOf(lease) };
}

function holderOf(lease: string): Holder | undefined {
  const [, metadata = ''] = splitFields(lease, 2);
  return unpackHolder(metadata);
}

function refusalBy(lease: string, leftMs: number): LeaseAttempt {
  const holder = holderOf(lease);
  return { acquired: false, retryAfterMs: leftMs < 0 ? null : leftMs, ...(holder ? { holder } : {}) };
}
