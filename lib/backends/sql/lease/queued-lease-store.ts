import { randomInt } from 'node:crypto';
import { type Asker, type HolderMetadata, type LeaseAttempt, type LeaseWatch, WakeUps } from '../../../core/index.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { NotificationListener } from './notification-listener.js';
import { POLL_MS_PER_WAITER, type LeaseTable, SqlLeaseStore } from './sql-lease-store.js';

/** Minimum milliseconds between two polls of a waiter while no notifications arrive. */
const MIN_POLL_MS = 50;
/** Maximum milliseconds between two polls. With jitter, it is less than the time after which a waiter loses its place. */
const MAX_POLL_MS = 3_000;

/** A caller of this process who may have to wait. */
interface Waiter {
  readonly wake: () => void;
  /** Function that ends the wait; `undefined` while the caller does not wait. */
  stopWaiting?: () => void;
}

/** A lease store whose server keeps the waiters of a key in line, in the key's row. A release hands the key to the first. */
export class QueuedLeaseStore extends SqlLeaseStore {
  readonly #wakeUps = new WakeUps();
  /** Callers that may wait, by owner. */
  readonly #waiters = new Map<string, Waiter>();
  /** Keys that this process holds, by the hashes of their owners, which messages contain. */
  readonly #heldKeys = new Map<string, string>();
  readonly #listener: NotificationListener;

  constructor(
    leaseTable: LeaseTable,
    private readonly line: WaitingLine,
    settings: ConnectionSettings,
  ) {
    super(leaseTable, settings);
    this.#listener = new NotificationListener(this.settings, this.connections, leaseTable.table, line, this.#wakeUps);
  }

  override async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const attempt = await super.tryAcquire(key, owner, ttlMs, metadata, asker);
    if (attempt.acquired) this.#heldKeys.set(this.line.hashOwner(owner), key);
    const waiter = this.#waiters.get(owner);
    if (attempt.acquired || !waiter) return attempt;
    waiter.stopWaiting ??= this.#startWaiting(owner, waiter.wake);
    const isNotified = this.#listener.ensureListening();
    // The owner stands in the line of claims, which has its own places for waiters.
    if (attempt.staysInLine === true) {
      return isNotified
        ? attempt
        : { ...attempt, retryAfterMs: Math.min(attempt.retryAfterMs ?? Infinity, this.#randomPollMs()) };
    }
    const retryAfterMs = await this.line.joinLine(this.connections.query, this.leaseTable.table, key, owner);
    if (retryAfterMs === 0) return { ...attempt, retryAfterMs };
    this.#listener.waiterWatch.recordInLine(key, owner);
    if (isNotified) this.#listener.probeIfQuiet();
    return { ...attempt, retryAfterMs: isNotified ? retryAfterMs : Math.min(retryAfterMs, this.#randomPollMs()) };
  }

  override release(key: string, owner: string): Promise<boolean> {
    this.#heldKeys.delete(this.line.hashOwner(owner));
    return super.release(key, owner);
  }

  /** Tells the holder's process, which hears it while it listens for its own waiters. */
  override async evict(key: string, owner: string): Promise<boolean> {
    const isEvicted = await super.evict(key, owner);
    const { query } = this.connections;
    // A message that is lost costs time only: the holder's next renewal tells it.
    if (isEvicted) await this.line.notify(query, this.leaseTable.table, owner).catch(() => undefined);
    return isEvicted;
  }

  watchLeases(onChange: (key: string) => void): LeaseWatch {
    this.#wakeUps.setNonWaiterListener((name) => {
      const key = this.#heldKeys.get(name);
      if (key !== undefined) onChange(key);
    });
    return { needsEarlyRenewal: false };
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    const waiter: Waiter = { wake };
    this.#waiters.set(owner, waiter);
    return () => {
      this.#waiters.delete(owner);
      waiter.stopWaiting?.();
    };
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#listener.close()]);
  }

  #startWaiting(owner: string, wake: () => void): () => void {
    const unwatch = this.#wakeUps.watch(this.line.hashOwner(owner), wake);
    const leave = this.#listener.waiterWatch.watch(owner);
    return () => {
      unwatch();
      leave();
    };
  }

  /** Returns random milliseconds until the next poll. They grow with the number of waiters, as for every polled store. */
  #randomPollMs(): number {
    const sharedPollMs = this.#listener.waiterWatch.waiterCount * POLL_MS_PER_WAITER;
    const pollMs = Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, sharedPollMs));
    return pollMs / 2 + randomInt(pollMs);
  }
}
