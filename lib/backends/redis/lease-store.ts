import {
  type AdoptedLease,
  type Caller,
  type HealthSource,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  type LeaseWatch,
  NotSentError,
  type TransferredLease,
  type StoreTraits,
} from '../../core/index.js';
import type { RedisCommand } from './connection/redis-client.js';
import type { RedisServers } from './connection/redis-servers.js';
import { scanKeys } from './key-scan.js';
import { explainStartError } from './missing-commands.js';
import type { ResolvedRedisOptions } from './options.js';
import { LateGrantOwners } from './late-grant-owners.js';
import { RENEW } from './scripts/lease-scripts.js';
import { isLeaseOf, keyOfLease, leaseKeyOf } from './scripts/redis-values.js';
import type { Subscriptions } from './connection/subscription.js';
import type { RedisScript } from './scripts/redis-script.js';

/** TTL of the unused key that `start` locks, in case its release fails. */
export const PROBE_TTL_MS = 5_000;

export type StoreOptions = Pick<ResolvedRedisOptions, 'prefix' | 'minReplicas' | 'tracking'>;

export abstract class RedisLeaseStore implements Omit<LeaseStore, 'tryAcquire'> {
  readonly name = 'redis';
  readonly guarantee = 'best-effort';
  readonly traits: StoreTraits = { keepsOrder: true };
  protected readonly lateGrantOwners = new LateGrantOwners();
  protected readonly prefix: string;
  protected readonly tracksKeys: boolean;

  /**
   * `WAIT`, which blocks the connection until replicas have the writes: https://redis.io/docs/latest/commands/wait/.
   * `undefined` if `minReplicas` is 0.
   */
  protected readonly confirmation: RedisCommand | undefined;

  constructor(
    protected readonly servers: RedisServers,
    { prefix, minReplicas, tracking }: StoreOptions,
    /** `undefined` in the mode `getset`. */
    private readonly subscriptions?: Subscriptions,
  ) {
    this.prefix = prefix;
    this.tracksKeys = tracking === 'auto' && subscriptions !== undefined;
    if (minReplicas > 0) this.confirmation = ['WAIT', minReplicas, Math.ceil(servers.timeoutMs / 4)];
  }

  get health(): HealthSource {
    return this.servers.health;
  }

  /** Redis commands that the scripts call. When a start fails, the error names those that the server lacks. */
  protected abstract readonly scriptCommands: readonly string[];

  /** Locks an unused key, which loads the scripts and shows whether the server lacks a command. */
  async start(): Promise<void> {
    await this.servers.startConnecting();
    try {
      await this.probeServer();
    } catch (cause) {
      throw await explainStartError(cause, this.servers, this.prefix, this.scriptCommands);
    }
  }

  abstract release(key: string, owner: string): Promise<boolean>;

  /** Records the owner of a failed acquisition if its request was sent: the server may still grant the key. */
  protected noteFailedAcquisition(owner: string, error: Error): void {
    if (!(error instanceof NotSentError)) this.lateGrantOwners.add(owner);
  }

  /** Releases the key once more if `owner` has released it: the server may have granted the key to the owner since. */
  protected releaseLateGrant(owner: string): void {
    const key = this.lateGrantOwners.releasedKeyOf(owner);
    if (key !== undefined) this.release(key, owner).catch(() => undefined);
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    if (this.tracksKeys) this.subscriptions?.openForHolder(leaseKeyOf(this.prefix, key));
    return this.renewWithoutSubscription(key, owner, ttlMs);
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    return this.servers.send(leaseKey, { commands: [['GET', leaseKey]], read: ([lease]) => isLeaseOf(lease, owner) });
  }

  abstract look(key: string): Promise<LeaseState>;

  watchLeases(onChange: (key: string | undefined) => void): LeaseWatch {
    const { servers, prefix } = this;
    if (this.tracksKeys) {
      servers.trackKeys((name) =>
        onChange(name === undefined ? undefined : keyOfLease(servers.keyPrefix + prefix, name)),
      );
    }
    return {
      get needsEarlyRenewal() {
        return servers.shouldTrackMoreKeys;
      },
    };
  }

  keys(prefix: string): AsyncGenerator<readonly string[]> {
    return scanKeys(this.servers, this.prefix, prefix);
  }

  async close(): Promise<void> {
    await Promise.all([this.subscriptions?.close(), this.servers.close()]);
  }

  /** Tests commands of the server on unused keys, and deletes these keys. */
  protected abstract probeServer(): Promise<unknown>;

  /** Renews a lease, but opens no subscription by which the server could report a change of its key. */
  protected renewWithoutSubscription(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.renewByScript(RENEW, [leaseKeyOf(this.prefix, key)], owner, ttlMs);
  }

  /**
   * Runs a script that gives a transferred lease to a new owner. `value` is the new owner's metadata. In the mode
   * `queue`, `token|` precedes the metadata.
   */
  protected adoptByScript(
    script: RedisScript,
    keys: readonly [string, ...string[]],
    { owner: formerOwner, fencingToken }: TransferredLease,
    { owner, ttlMs, value }: Omit<AdoptedLease, 'metadata'> & { readonly value: string },
    caller: Caller | undefined,
  ): Promise<LeaseAttempt> {
    return this.servers.send(keys[0], {
      commands: [{ script, keys, args: [formerOwner, owner, value, Math.ceil(ttlMs)] }],
      confirmation: this.confirmation,
      read: ([isAdopted, replicaCount]) => {
        if (Number(isAdopted) !== 1) return { acquired: false, retryAfterMs: null };
        this.assertReplicated(replicaCount);
        return { acquired: true, fencingToken };
      },
      caller,
      onFailure: (error) => this.noteFailedAcquisition(owner, error),
      onLateReply: () => this.releaseLateGrant(owner),
    });
  }

  protected renewByScript(
    script: RedisScript,
    keys: readonly [string, ...string[]],
    owner: string,
    ttlMs: number,
  ): Promise<boolean> {
    return this.servers.send(keys[0], {
      commands: [{ script, keys, args: [owner, Math.ceil(ttlMs)] }],
      confirmation: this.confirmation,
      read: ([isRenewed, replicaCount]) => {
        if (Number(isRenewed) !== 1) return false;
        this.assertReplicated(replicaCount);
        return true;
      },
    });
  }

  protected assertReplicated(replicaCount: unknown): void {
    if (!this.confirmation) return;
    const [, minReplicas, timeoutMs] = this.confirmation;
    if (Number(replicaCount) >= Number(minReplicas)) return;
    throw new Error(`only ${Number(replicaCount)} of ${minReplicas} replicas had it within ${timeoutMs} ms`);
  }
}
