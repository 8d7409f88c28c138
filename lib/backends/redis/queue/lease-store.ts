import { randomInt } from 'node:crypto';
import {
  type Asker,
  type Holder,
  type HolderMetadata,
  type KeyHolder,
  type KeyWaiter,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  MOST_WAITERS,
  packMetadata,
  unpackHolder,
  type WakeUps,
  NotSentError,
} from '../../../core/index.js';
import type { RedisServers } from '../connection/redis-servers.js';
import { RedisLeaseStore } from '../lease-store.js';
import { type QueueScripts, queueScripts } from '../scripts/queue-scripts.js';
import { asList, isOne, leaseKeyOf, queueKeysOf, splitFields } from '../scripts/redis-values.js';
import type { RedisScript } from '../scripts/redis-script.js';
import type { WakeUpChannels } from './wake-up-channel.js';

/** How long a waiter sleeps that cannot be woken, give or take half. */
const POLL_MS = 100;
/**
 * How long a waiter in line sleeps at most, give or take an eighth. A wake-up may be lost with a connection that died
 * unseen, and the queue passes over waiters that do not ask: see `SILENT_MS` of the scripts.
 */
const LOOK_MS = 3_500;
/** The later in the queue, the later the look after the end of a lease: the first who looks wakes the next holder. */
const DELAY_PER_INDEX_MS = 25;
const MOST_DELAY_MS = 250;
/** How many owners in the line are remembered. */
const MOST_REMEMBERED = 5_000;

/**
 * Waiters stand in line on the server, and a release hands the key to the first of them that still listens: no herd,
 * first come first served over all processes. A grant is one script, and the queue needs no clean-up, because who does
 * not answer is skipped. Every waiter asks by itself as well, a few times in ten seconds, which is its sign of life.
 */
export class QueueLeaseStore extends RedisLeaseStore implements LeaseStore {
  readonly #waiters: WakeUps;
  readonly #scripts: QueueScripts;
  /**
   * The last owners that were refused, or not answered, while they waited, and the keys of those that have left. An
   * owner is used once: a key that is handed to one who has left answers a question that the network delivered late.
   */
  readonly #inLine = new Map<string, string | undefined>();

  constructor(
    servers: RedisServers,
    prefix: string,
    minReplicas: number,
    private readonly channels: WakeUpChannels,
  ) {
    super(servers, prefix, minReplicas);
    this.#waiters = channels.wakeUps;
    this.#scripts = queueScripts(channels);
    // An owner who has the lease did not leave.
    this.#waiters.onStray((owner) => {
      const key = this.#inLine.get(owner);
      if (key !== undefined) this.release(key, owner).catch(() => undefined);
    });
  }

  protected get acquisition(): RedisScript {
    return this.#scripts.acquire;
  }

  tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const address = this.#waiters.has(owner) ? this.channels.addressOf(leaseKey) : undefined;
    const keys = this.#keysOf(leaseKey);
    const args = [owner, Math.ceil(ttlMs), `${address ?? ''}|${packMetadata(metadata)}`];
    return this.servers.ask(leaseKey, {
      requests: [{ script: this.#scripts.acquire, keys, args }],
      confirmation: this.confirmation,
      read: (replies) => this.#attemptOf(leaseKey, owner, replies),
      asker,
      onFailure: (error) => {
        if (!(error instanceof NotSentError)) this.#noteInLine(owner);
      },
    });
  }

  release(key: string, owner: string): Promise<boolean> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    if (this.#inLine.has(owner)) this.#inLine.set(owner, key);
    const requests = [{ script: this.#scripts.release, keys: this.#keysOf(leaseKey), args: [owner] }];
    return this.servers.ask(leaseKey, { requests, read: isOne });
  }

  look(key: string): Promise<LeaseState> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    return this.servers.ask(leaseKey, {
      requests: [{ script: this.#scripts.look, keys: this.#keysOf(leaseKey), args: [MOST_WAITERS] }],
      read: ([reply]) => {
        const [lease, left, line] = asList(reply);
        const waiters = asList(line).flatMap((entry) => waiterOf(String(entry)));
        return typeof lease === 'string' ? { holder: described(lease, Number(left)), waiters } : { waiters };
      },
    });
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    return this.#waiters.watch(owner, wake);
  }

  override async close(): Promise<void> {
    await Promise.all([this.channels.close(), super.close()]);
  }

  /** A node of a cluster has to know all keys: a slot that is moving must stop the script before it begins. */
  #keysOf(leaseKey: string): readonly string[] {
    return this.channels.sharded ? queueKeysOf(leaseKey) : [leaseKey];
  }

  #noteInLine(owner: string): void {
    if (this.#inLine.has(owner)) return;
    this.#inLine.set(owner, undefined);
    if (this.#inLine.size <= MOST_REMEMBERED) return;
    const [oldest = owner] = this.#inLine.keys();
    this.#inLine.delete(oldest);
  }

  #attemptOf(leaseKey: string, owner: string, [reply, copies]: readonly unknown[]): LeaseAttempt {
    const [acquired, tokenOrLeft, lease, index] = asList(reply);
    if (Number(acquired) === 1) {
      this.assertConfirmed(copies);
      return { acquired: true, fencingToken: BigInt(String(tokenOrLeft)) };
    }
    if (this.#waiters.has(owner)) {
      this.#noteInLine(owner);
      this.channels.open(leaseKey);
    }
    const holder = holderOf(String(lease));
    return {
      acquired: false,
      retryAfterMs: retryAfter(Number(tokenOrLeft), Number(index)),
      ...(holder ? { holder } : {}),
    };
  }
}

/** `leftMs` is negative for a lease without an end, which somebody else has written. */
function retryAfter(leftMs: number, index: number): number {
  const left = leftMs < 0 ? Infinity : leftMs;
  if (index < 0) return Math.min(left, vary(POLL_MS, POLL_MS / 2));
  return Math.min(left + Math.min(index * DELAY_PER_INDEX_MS, MOST_DELAY_MS), vary(LOOK_MS, LOOK_MS / 8));
}

function vary(ms: number, by: number): number {
  return ms - by + randomInt(2 * Math.ceil(by) + 1);
}

function described(lease: string, leftMs: number): KeyHolder {
  const [owner = '', token = ''] = lease.split('|', 2);
  const fencingToken = /^\d+$/u.test(token) ? { fencingToken: BigInt(token) } : {};
  return { owner, ...fencingToken, ...(leftMs < 0 ? {} : { leftMs }), ...holderOf(lease) };
}

/** Of an entry in the line, after its owner. None where the queue passes over it. */
function waiterOf(entry: string): KeyWaiter[] {
  const [owner = '', , seen = '', , metadata = ''] = splitFields(entry, 5);
  return Number(seen) > 0 ? [{ owner, ...unpackHolder(metadata) }] : [];
}

/** The token is the server's clock in microseconds at the time of the grant, or hardly more. */
function holderOf(lease: string): Holder | undefined {
  const [, token = '', metadata = ''] = splitFields(lease, 3);
  return unpackHolder(metadata, new Date(Number(token) / 1_000));
}
