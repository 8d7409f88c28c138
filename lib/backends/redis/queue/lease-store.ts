import { randomInt } from 'node:crypto';
import {
  type Asker,
  type HealthSource,
  type Holder,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  packMetadata,
  unpackHolder,
  type WakeUps,
} from '../../../core/index.js';
import { DepartedOwners } from './departed-owners.js';
import type { WakeUpChannels } from './wake-up-channel.js';
import { isOwn, LockKeys, nobody, splitFields } from '../scripts/lease-value.js';
import { asList, isOne } from '../scripts/redis-reply.js';
import { QueueScripts, RENEW } from '../scripts/queue-scripts.js';
import type { RedisServers } from '../connection/redis-servers.js';
import type { ReplicaCheck } from '../connection/replica-check.js';

/** How long a waiter sleeps that cannot be woken, give or take half. */
const POLL_MS = 100;
/**
 * How long a waiter in line sleeps at most, give or take an eighth: a wake-up may be lost with a connection that died unseen,
 * and whoever does not ask is passed over. See `SILENT_MS` of the scripts.
 */
const LOOK_MS = 3_500;
/** The later in the queue, the later the look after the end of a lease: whoever looks first wakes the one whose turn it is. */
const PATIENCE_PER_PLACE_MS = 25;
const MOST_PATIENCE_MS = 250;

/**
 * Waiters stand in line on the server, and a release hands the key to the first of them that still listens: no herd, first come
 * first served over all processes. The server being one, a grant is one script, and its queue needs no clean-up: who does not
 * answer is skipped. Every waiter asks by itself as well, a few times in ten seconds, which is its sign of life.
 */
export class QueueLeaseStore implements LeaseStore {
  readonly name = 'redis';
  readonly guarantee = 'best-effort';
  readonly keepsOrder = true;
  readonly #servers: RedisServers;
  readonly #replicas: ReplicaCheck;
  readonly #channels: WakeUpChannels;
  readonly #waiters: WakeUps;
  readonly #scripts: QueueScripts;
  readonly #keys: LockKeys;
  readonly #departed = new DepartedOwners();
  /** Those who were refused, or not answered, while they waited. */
  readonly #inLine = new Set<string>();

  constructor(
    servers: RedisServers,
    replicas: ReplicaCheck,
    channels: WakeUpChannels,
    waiters: WakeUps,
    prefix: string,
  ) {
    this.#servers = servers;
    this.#replicas = replicas;
    this.#channels = channels;
    this.#waiters = waiters;
    this.#scripts = new QueueScripts(channels);
    this.#keys = new LockKeys(prefix);
    waiters.onStray(this.#giveBack);
  }

  start(): Promise<void> {
    return this.#servers.start(() => this.release(nobody(), nobody()));
  }

  tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const leaseKey = this.#keys.lease(key);
    const address = this.#waiters.has(owner) ? this.#channels.addressOf(leaseKey) : undefined;
    const args = [owner, Math.ceil(ttlMs), `${address ?? ''}|${packMetadata(metadata)}`];
    const acquire = this.#scripts.acquire.call(this.#scripts.keysOf(leaseKey), args);
    return this.#servers.askFor(asker, leaseKey, acquire, ...this.#replicas.requests).then(
      (replies) => this.#attemptOf(leaseKey, owner, replies),
      (error: unknown) => {
        this.#inLine.add(owner);
        throw error;
      },
    );
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
    if (this.#inLine.delete(owner)) this.#departed.add(owner, key);
    return this.#servers.ask(leaseKey, this.#scripts.release.call(this.#scripts.keysOf(leaseKey), [owner])).then(isOne);
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    return this.#waiters.watch(owner, wake);
  }

  async close(): Promise<void> {
    await Promise.all([this.#channels.close(), this.#servers.close()]);
  }

  get health(): HealthSource {
    return this.#servers.health;
  }

  /** The key was handed to an owner who has left. One who has the lease, and did not wait for the message, is none of those. */
  readonly #giveBack = (owner: string): void => {
    const key = this.#departed.keyOf(owner);
    if (key !== undefined) this.release(key, owner).catch(() => undefined);
  };

  #attemptOf(leaseKey: string, owner: string, [reply, copies]: readonly unknown[]): LeaseAttempt {
    const [acquired, tokenOrLeft, lease, place] = asList(reply);
    if (Number(acquired) === 1) {
      this.#replicas.assert(copies);
      return { acquired: true, fencingToken: BigInt(String(tokenOrLeft)) };
    }
    if (this.#waiters.has(owner)) {
      this.#inLine.add(owner);
      this.#channels.open(leaseKey);
    }
    const holder = holderOf(String(lease));
    return {
      acquired: false,
      retryAfterMs: retryAfter(Number(tokenOrLeft), Number(place)),
      ...(holder ? { holder } : {}),
    };
  }
}

/** `leftMs` is negative for a lease without an end, which is none of ours. */
function retryAfter(leftMs: number, place: number): number {
  const left = leftMs < 0 ? Infinity : leftMs;
  if (place < 0) return Math.min(left, vary(POLL_MS, POLL_MS / 2));
  return Math.min(left + Math.min(place * PATIENCE_PER_PLACE_MS, MOST_PATIENCE_MS), vary(LOOK_MS, LOOK_MS / 8));
}

function vary(ms: number, by: number): number {
  return ms - by + randomInt(2 * Math.ceil(by) + 1);
}

/** The token is the server's clock in microseconds at the time of the grant, or hardly more. */
function holderOf(lease: string): Holder | undefined {
  const fields = splitFields(lease, 3);
  if (!fields) return undefined;
  const [, token = '', metadata = ''] = fields;
  return unpackHolder(metadata, new Date(Number(token) / 1_000));
}
