import { randomInt } from 'node:crypto';
import {
  type BackendHealth,
  type Holder,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  packMetadata,
  unpackHolder,
} from '../../core/index.js';
import { GrantChannel } from './grant-channel.js';
import { LockKeys, splitFields } from './lease-value.js';
import type { ClientSource } from './redis-client.js';
import type { RedisConnection } from './redis-connection.js';
import { asList } from './redis-reply.js';
import { ACQUIRE, RELEASE } from './redis-scripts.js';
import { RenewalBatch } from './renewal-batch.js';

/** How long a waiter sleeps that cannot be woken, give or take half. */
const POLL_MS = 100;
/** The later in the queue, the later the look for a holder that died: the first one to look wakes or skips the others. */
const PATIENCE_PER_PLACE_MS = 250;

/**
 * Waiters stand in line on the server, and a release hands the key to the first of them that still listens: no polling, no
 * herd, first come first served over all processes. The server being one, a grant is one script, and its queue needs no
 * clean-up: who does not answer is skipped.
 */
export class QueueLeaseStore implements LeaseStore {
  readonly name = 'redis';
  readonly guarantee = 'best-effort';
  readonly #connection: RedisConnection;
  readonly #channel: GrantChannel;
  readonly #renewals: RenewalBatch;
  readonly #keys: LockKeys;

  constructor(connection: RedisConnection, source: ClientSource, prefix: string) {
    this.#connection = connection;
    this.#channel = new GrantChannel(source, prefix, connection.health);
    this.#renewals = new RenewalBatch(connection);
    this.#keys = new LockKeys(prefix);
    connection.health.onChange(({ status }) => status === 'down' && this.#channel.reconnect());
  }

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const args = [owner, Math.ceil(ttlMs), packMetadata(metadata), this.#channel.addressOf(owner) ?? ''];
    const reply = await this.#connection.run(ACQUIRE, this.#keys.all(key), args);
    const [acquired, tokenOrLeft, lease, place] = asList(reply);
    if (Number(acquired) === 1) return { acquired: true, fencingToken: BigInt(String(tokenOrLeft)) };
    if (this.#channel.watches(owner)) void this.#channel.open();
    const holder = holderOf(String(lease));
    return {
      acquired: false,
      retryAfterMs: retryAfter(Number(tokenOrLeft), Number(place)),
      ...(holder ? { holder } : {}),
    };
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#renewals.renew(this.#keys.lease(key), owner, ttlMs);
  }

  async release(key: string, owner: string): Promise<boolean> {
    return Number(await this.#connection.run(RELEASE, this.#keys.all(key), [owner])) === 1;
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    return this.#channel.watch(owner, wake);
  }

  async close(): Promise<void> {
    await Promise.all([this.#channel.close(), this.#connection.close()]);
  }

  health(): BackendHealth {
    return this.#connection.health.current;
  }

  onHealthChange(listener: (health: BackendHealth) => void): () => void {
    return this.#connection.health.onChange(listener);
  }
}

/** `leftMs` is negative for a lease without an end, which is none of ours. */
function retryAfter(leftMs: number, place: number): number | null {
  const left = leftMs < 0 ? Infinity : leftMs;
  if (place >= 0) return left === Infinity ? null : left + place * PATIENCE_PER_PLACE_MS;
  return Math.min(left, POLL_MS / 2 + randomInt(POLL_MS + 1));
}

/** The token is the server's clock in microseconds at the time of the grant, or hardly more. */
function holderOf(lease: string): Holder | undefined {
  const fields = splitFields(lease, 3);
  if (!fields) return undefined;
  const [, token = '', metadata = ''] = fields;
  return unpackHolder(metadata, new Date(Number(token) / 1_000));
}
