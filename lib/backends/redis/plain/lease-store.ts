import {
  type AdoptedLease,
  type Caller,
  type Holder,
  type HolderMetadata,
  type KeyHolder,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  ownMetadata,
  packHolder,
  type TransferredLease,
  unpackHolder,
} from '../../../core/index.js';
import { PROBE_TTL_MS, RedisLeaseStore } from '../lease-store.js';
import { ADOPT, COMPARE_AND_DELETE, SET_IF_FREE } from '../scripts/lease-scripts.js';
import {
  asList,
  createUnusedName,
  isFirstReplyOne,
  isLeaseOf,
  leaseKeyOf,
  splitFields,
} from '../scripts/redis-values.js';

/**
 * Store that has nothing on the server but the leases, each set by `SET key lease NX PX ttl`. Waiters poll.
 *
 * The fencing token is the server's time, read in one step with the `SET`. Tokens may repeat if the server's clock is
 * set back, because the server does not keep the last token.
 */
export class PlainLeaseStore extends RedisLeaseStore implements LeaseStore {
  protected readonly scriptCommands = ['SET', 'GET', 'TIME', 'PTTL', 'PEXPIRE', 'DEL'];

  tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const newLease = `${owner}|${packHolder(metadata)}`;
    return this.servers.send(leaseKey, {
      commands: [{ script: SET_IF_FREE, keys: [leaseKey], args: [newLease, Math.ceil(ttlMs)] }],
      confirmation: this.confirmation,
      read: ([reply, replicaCount]) => {
        if (!Array.isArray(reply)) {
          this.assertReplicated(replicaCount);
          return toGrant(reply);
        }
        const [timeUs, lease, leftMs] = asList(reply);
        const refusal = toRefusal(String(lease), Number(leftMs));
        if (!isLeaseOf(lease, owner)) return refusal;
        // The reply to an earlier grant was lost. No caller knows that token, so the time of this reply replaces it.
        return this.renew(key, owner, ttlMs).then((isRenewed) => (isRenewed ? toGrant(timeUs) : refusal));
      },
      caller,
      onFailure: (error) => this.noteFailedAcquisition(owner, error),
      onLateReply: () => this.releaseLateGrant(owner),
    });
  }

  adopt(key: string, transferred: TransferredLease, adopted: AdoptedLease, caller?: Caller): Promise<LeaseAttempt> {
    const keys = [leaseKeyOf(this.prefix, key)] as const;
    return this.adoptByScript(ADOPT, keys, transferred, { ...adopted, value: packHolder(adopted.metadata) }, caller);
  }

  look(key: string): Promise<LeaseState> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const commands = [
      ['GET', leaseKey],
      ['PTTL', leaseKey],
    ] as const;
    return this.servers.send(leaseKey, {
      commands,
      read: ([lease, leftMs]) => (typeof lease === 'string' ? { holder: keyHolderOf(lease, Number(leftMs)) } : {}),
    });
  }

  protected async probeServer(): Promise<void> {
    const [key, owner] = [createUnusedName(), createUnusedName()];
    await Promise.all([
      this.tryAcquire(key, owner, PROBE_TTL_MS, ownMetadata(undefined)),
      this.renewWithoutSubscription(key, owner, PROBE_TTL_MS),
      this.release(key, owner),
    ]);
  }

  release(key: string, owner: string): Promise<boolean> {
    this.lateGrantOwners.noteRelease(key, owner);
    const leaseKey = leaseKeyOf(this.prefix, key);
    const commands = [{ script: COMPARE_AND_DELETE, keys: [leaseKey], args: [owner] }];
    return this.servers.send(leaseKey, { commands, read: isFirstReplyOne });
  }
}

/** @param leftMs reply of PTTL, negative for a lease without an end */
function keyHolderOf(lease: string, leftMs: number): KeyHolder {
  const [owner = ''] = lease.split('|', 1);
  return { owner, ...(leftMs < 0 ? {} : { leftMs }), ...holderOf(lease) };
}

function holderOf(lease: string): Holder | undefined {
  const [, metadata = ''] = splitFields(lease, 2);
  return unpackHolder(metadata);
}

/** @param timeUs the server's time, an integer; some clients give it as a text */
function toGrant(timeUs: unknown): LeaseAttempt {
  return { acquired: true, fencingToken: BigInt(Number(timeUs)) };
}

function toRefusal(lease: string, leftMs: number): LeaseAttempt {
  const holder = holderOf(lease);
  return { acquired: false, retryAfterMs: leftMs < 0 ? null : leftMs, ...(holder ? { holder } : {}) };
}
