import { randomInt } from 'node:crypto';
import { type Caller, type HolderMetadata, type LeaseAttempt, type LeaseWatch, WakeUps } from '../../../core/index.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { NotificationListener } from './notification-listener.js';
import { POLL_MS_PER_WAITER, type LeaseTable, SqlLeaseStore } from './sql-lease-store.js';

const MIN_POLL_MS = 50;
/**
 * Maximum milliseconds between two polls, before a jitter of ±50 %. Even with the jitter, the pause is shorter than
 * `MAX_WAITER_SILENCE_MS`, after which a waiter loses its place.
 */
const MAX_POLL_MS = 3_000;

interface Waiter {
  readonly wake: () => void;
  /** Present once the waiter was refused, and waits for notifications. */
  stopWaiting?: () => void;
}

/** Lease store of a server that keeps waiters in the row of their key. A release hands the key to the first waiter. */
export class QueuedLeaseStore extends SqlLeaseStore {
  readonly #wakeUps = new WakeUps();
  readonly #waiters = new Map<string, Waiter>();
  readonly #heldKeyByOwnerHash = new Map<string, string>();
  readonly #listener: NotificationListener;

  constructor(
    leaseTable: LeaseTable,
    private readonly waitingLine: WaitingLine,
    settings: ConnectionSettings,
  ) {
    super(leaseTable, settings);
    this.#listener = new NotificationListener(
      this.settings,
      this.connections,
      leaseTable.table,
      waitingLine,
      this.#wakeUps,
      () => this.#heldKeyByOwnerHash.size > 0,
    );
    const { adopt } = this;
    if (!adopt) return;
    this.adopt = async (key, transferredLease, adoptedLease) => {
      const attempt = await adopt(key, transferredLease, adoptedLease);
      this.#recordHolder(key, adoptedLease.owner, attempt);
      return attempt;
    };
  }

  override async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    const attempt = await super.tryAcquire(key, owner, ttlMs, metadata, caller);
    this.#recordHolder(key, owner, attempt);
    const waiter = this.#waiters.get(owner);
    if (attempt.acquired || !waiter) return attempt;
    waiter.stopWaiting ??= this.#startWaiting(owner, waiter.wake);
    const isListening = this.#listener.ensureListening();
    // The owner already has a place in the line of claims.
    if (attempt.staysInLine === true) {
      return isListening
        ? attempt
        : { ...attempt, retryAfterMs: Math.min(attempt.retryAfterMs ?? Infinity, this.#pickPollMs()) };
    }
    const retryAfterMs = await this.waitingLine.joinLine(this.connections.query, this.leaseTable.table, key, owner);
    if (retryAfterMs === 0) return { ...attempt, retryAfterMs };
    this.#listener.waiterWatch.recordInLine(key, owner);
    if (isListening) this.#listener.probeIfQuiet();
    return { ...attempt, retryAfterMs: isListening ? retryAfterMs : Math.min(retryAfterMs, this.#pickPollMs()) };
  }

  override async passOn(key: string, owner: string, ttlMs: number): Promise<boolean> {
    this.#heldKeyByOwnerHash.delete(this.waitingLine.hashOwner(owner));
    return super.passOn(key, owner, ttlMs);
  }

  override release(key: string, owner: string): Promise<boolean> {
    this.#heldKeyByOwnerHash.delete(this.waitingLine.hashOwner(owner));
    return super.release(key, owner);
  }

  override async evict(key: string, owner: string): Promise<boolean> {
    const isEvicted = await super.evict(key, owner);
    const { query } = this.connections;
    // If the holder's process misses the message, it learns of the eviction when its next renewal fails.
    if (isEvicted) await this.waitingLine.notify(query, this.leaseTable.table, owner).catch(() => undefined);
    return isEvicted;
  }

  watchLeases(onChange: (key: string) => void): LeaseWatch {
    this.#wakeUps.setNonWaiterListener((ownerHash) => {
      const key = this.#heldKeyByOwnerHash.get(ownerHash);
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

  #recordHolder(key: string, owner: string, { acquired }: LeaseAttempt): void {
    if (acquired) this.#heldKeyByOwnerHash.set(this.waitingLine.hashOwner(owner), key);
  }

  #startWaiting(owner: string, wake: () => void): () => void {
    const unwatch = this.#wakeUps.watch(this.waitingLine.hashOwner(owner), wake);
    const removeWaiter = this.#listener.waiterWatch.addWaiter(owner);
    return () => {
      unwatch();
      removeWaiter();
    };
  }

  #pickPollMs(): number {
    const sharedPollMs = this.#listener.waiterWatch.waiterCount * POLL_MS_PER_WAITER;
    const pollMs = Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, sharedPollMs));
    return pollMs / 2 + randomInt(pollMs);
  }
}
