import {
  type AdoptedLease,
  type Caller,
  type HolderMetadata,
  isExclusive,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  MAX_PERMITS,
  MAX_WAITERS,
  packMetadata,
  type TransferredLease,
  type WakeUps,
  type StoreTraits,
} from '../../../core/index.js';
import { isUndeclaredKeyError } from '../error.js';
import type { RedisArgument } from '../connection/redis-client.js';
import type { RedisRequest, RedisServers } from '../connection/redis-servers.js';
import { PROBE_TTL_MS, RedisLeaseStore, type StoreOptions } from '../lease-store.js';
import { ADOPT } from '../scripts/lease-scripts.js';
import { createQueueScripts, NEEDS_SHARES_KEY, type QueueScripts } from '../scripts/queue-scripts.js';
import {
  asList,
  createUnusedName,
  isFirstReplyOne,
  leaseKeyOf,
  queueKeysOf,
  shareKeysOf,
} from '../scripts/redis-values.js';
import { holderOf, parseKeyState } from './key-state.js';
import { RetryDelays } from './retry-delays.js';
import type { Subscriptions } from '../connection/subscription.js';

const SCRIPT_COMMANDS = 'SET GET DEL EXISTS TIME PTTL PEXPIRE LINDEX LPOS LREM RPUSH HGET HSET HDEL'.split(' ');

type ScriptName = keyof QueueScripts['exclusive'];
type ClaimKind = 'exclusive' | 'shared';

/**
 * A store with a queue on the server. A release hands the key to the first waiter that still listens: first come, first
 * served among all processes.
 *
 * The queue needs no clean-up, because it skips waiters that were silent for `MAX_WAITER_SILENCE_MS`. A live waiter
 * retries more often than that.
 */
export class QueueLeaseStore extends RedisLeaseStore implements LeaseStore {
  override readonly traits = { keepsOrder: true, maxPermits: MAX_PERMITS } satisfies StoreTraits;
  protected readonly scriptCommands = SCRIPT_COMMANDS;
  readonly #wakeUps: WakeUps;
  readonly #retryDelays = new RetryDelays();
  #scripts: QueueScripts;
  /** Whether calls name all their keys; `undefined` until a first call has shown whether the server demands it. */
  #declaresKeys: boolean | undefined;

  constructor(
    servers: RedisServers,
    options: StoreOptions,
    private readonly waiterSubscriptions: Subscriptions,
  ) {
    super(servers, options, waiterSubscriptions);
    this.#wakeUps = waiterSubscriptions.wakeUps;
    const { isSharded } = waiterSubscriptions;
    if (isSharded) this.#declaresKeys = true;
    this.#scripts = createQueueScripts({ isSharded, declaresKeys: isSharded });
    this.#wakeUps.setNonWaiterListener((owner) => this.releaseLateGrant(owner));
  }

  tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const channel = this.#wakeUps.has(owner) ? this.waiterSubscriptions.channelFor(leaseKey) : undefined;
    const args = [owner, Math.ceil(ttlMs), `${channel ?? ''}|${packMetadata(metadata)}`];
    return this.#runScript('acquire', leaseKey, claimKindOf(owner), args, {
      confirmation: this.confirmation,
      read: (replies) => this.#readAttempt(leaseKey, owner, replies),
      caller,
      onFailure: (error) => this.noteFailedAcquisition(owner, error),
      onLateReply: () => this.releaseLateGrant(owner),
    });
  }

  adopt(key: string, transferred: TransferredLease, adopted: AdoptedLease, caller?: Caller): Promise<LeaseAttempt> {
    const { owner, metadata } = adopted;
    const leaseKey = leaseKeyOf(this.prefix, key);
    const lease = { ...adopted, value: `${transferred.fencingToken}|${packMetadata(metadata)}` };
    if (isExclusive(owner)) return this.adoptByScript(ADOPT, [leaseKey], transferred, lease, caller);
    return this.adoptByScript(this.#scripts.shared.adopt, shareKeysOf(leaseKey), transferred, lease, caller);
  }

  release(key: string, owner: string): Promise<boolean> {
    this.lateGrantOwners.noteRelease(key, owner);
    const leaseKey = leaseKeyOf(this.prefix, key);
    return this.#runScript('release', leaseKey, claimKindOf(owner), [owner], { read: isFirstReplyOne });
  }

  evict(key: string, owner: string): Promise<boolean> {
    if (!isExclusive(owner)) return this.release(key, owner);
    return this.#runScript('evict', leaseKeyOf(this.prefix, key), 'exclusive', [owner], { read: isFirstReplyOne });
  }

  override renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    if (isExclusive(owner)) return super.renew(key, owner, ttlMs);
    return this.renewByScript(this.#scripts.shared.renew, shareKeysOf(leaseKeyOf(this.prefix, key)), owner, ttlMs);
  }

  override isHeldBy(key: string, owner: string): Promise<boolean> {
    if (isExclusive(owner)) return super.isHeldBy(key, owner);
    const keys = shareKeysOf(leaseKeyOf(this.prefix, key));
    const commands = [{ script: this.#scripts.shared.isHeld, keys, args: [owner] }];
    return this.servers.send(keys[0], { commands, read: isFirstReplyOne });
  }

  look(key: string): Promise<LeaseState> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const read = ([reply]: readonly unknown[]): LeaseState => parseKeyState(reply);
    return this.#runScript('look', leaseKey, 'exclusive', [MAX_WAITERS], { read });
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    return this.#wakeUps.watch(owner, wake);
  }

  protected async probeServer(): Promise<void> {
    const [key, holder, waiter] = [createUnusedName(), createUnusedName(), createUnusedName()];
    const leaseKey = leaseKeyOf(this.prefix, key);
    const argsOf = (owner: string, channel: string) => [owner, PROBE_TTL_MS, `${channel}|`];
    const read = (): undefined => undefined;
    await Promise.all([
      this.#runScript('acquire', leaseKey, 'exclusive', argsOf(holder, ''), { read, confirmation: this.confirmation }),
      this.#runScript('acquire', leaseKey, 'exclusive', argsOf(waiter, 'nobody'), { read }),
      this.renewWithoutSubscription(key, holder, PROBE_TTL_MS),
      this.release(key, waiter),
      this.release(key, holder),
    ]);
    await this.servers.send(leaseKey, { commands: [['DEL', ...queueKeysOf(leaseKey)]], read });
  }

  /**
   * Runs a script. Repeats the call with all keys if the server demands them, or with the key of the shares if the
   * script replies `NEEDS_SHARES_KEY`.
   */
  #runScript<T>(
    name: ScriptName,
    leaseKey: string,
    kind: ClaimKind,
    args: readonly RedisArgument[],
    request: Omit<RedisRequest<T>, 'commands'>,
  ): Promise<T> {
    const script = this.#scripts[kind][name];
    if (this.#declaresKeys === false) {
      // Copies each field, because a spread takes a microsecond more, and every acquisition and release comes here.
      const { confirmation, read, caller, onFailure, onLateReply } = request;
      const commands = [{ script, keys: [leaseKey], args }];
      return this.servers.send(leaseKey, { commands, confirmation, read, caller, onFailure, onLateReply });
    }
    const keys = queueKeysOf(leaseKey).slice(0, script.keyCount);
    const read = (replies: readonly unknown[]): T | Promise<T> =>
      replies[0] === NEEDS_SHARES_KEY
        ? this.#runScript(name, leaseKey, 'shared', args, request)
        : request.read(replies);
    const resultPromise = this.servers.send(leaseKey, { ...request, commands: [{ script, keys, args }], read });
    if (this.#declaresKeys) return resultPromise;
    const onFirstResult = (value: T): T => {
      this.#declaresKeys ??= false;
      return value;
    };
    return resultPromise.then(onFirstResult, (error: unknown) => {
      if (!(error instanceof Error && isUndeclaredKeyError(error))) throw error;
      this.#declareKeys();
      return this.#runScript(name, leaseKey, kind, args, request);
    });
  }

  /**
   * Makes all calls name all their keys. The refused call can be repeated: the server has carried out no part of it.
   */
  #declareKeys(): void {
    this.#declaresKeys = true;
    this.#scripts = createQueueScripts({ isSharded: this.waiterSubscriptions.isSharded, declaresKeys: true });
  }

  #readAttempt(leaseKey: string, owner: string, [reply, replicaCount]: readonly unknown[]): LeaseAttempt {
    if (typeof reply === 'string') {
      this.assertReplicated(replicaCount);
      return { acquired: true, fencingToken: BigInt(reply) };
    }
    const [leftMs, lease, queueIndex] = asList(reply);
    if (this.#wakeUps.has(owner)) {
      this.lateGrantOwners.add(owner);
      this.waiterSubscriptions.openForWaiter(leaseKey);
    }
    const holder = holderOf(String(lease));
    return {
      acquired: false,
      retryAfterMs: this.#retryDelays.getNextMs(Number(leftMs), Number(queueIndex)),
      ...(holder ? { holder } : {}),
    };
  }
}

function claimKindOf(owner: string): ClaimKind {
  return isExclusive(owner) ? 'exclusive' : 'shared';
}
