import { randomInt } from 'node:crypto';
import { type Asker, type HolderMetadata, type LeaseAttempt, WakeUps } from '../../../core/index.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { NotificationListener } from './notification-listener.js';
import { POLL_MS_PER_WAITER, type LeaseTable, SqlLeaseStore } from './sql-lease-store.js';

/** The pause between two questions as long as no notifications arrive. */
const DEAF_POLL_MS = 50;
/** With jitter it is less than the time after which a waiter loses its place. */
const LONGEST_POLL_MS = 3_000;

/** A caller of this process who may have to wait. */
interface Waiter {
  readonly wake: () => void;
  /** Set once it waits. */
  leave?: () => void;
}

/** A lease store whose server keeps those who wait in line, on the row, and hands the key to the first of them. */
export class QueuedLeaseStore extends SqlLeaseStore {
  readonly #wakeUps = new WakeUps();
  /** By owner. */
  readonly #waiters = new Map<string, Waiter>();
  readonly #listener: NotificationListener;

  constructor(
    rows: LeaseTable,
    private readonly line: WaitingLine,
    settings: ConnectionSettings,
  ) {
    super(rows, settings);
    this.#listener = new NotificationListener(this.settings, this.connections, rows.table, line, this.#wakeUps);
  }

  override async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const attempt = await super.tryAcquire(key, owner, ttlMs, metadata, asker);
    const waiter = this.#waiters.get(owner);
    if (attempt.acquired || !waiter) return attempt;
    waiter.leave ??= this.#enter(owner, waiter.wake);
    const hears = this.#listener.listen();
    // Among several who share the key, or wait to.
    if (attempt.staysInLine === true) {
      return hears ? attempt : { ...attempt, retryAfterMs: Math.min(attempt.retryAfterMs ?? Infinity, this.#pollMs()) };
    }
    const retryAfterMs = await this.line.join(this.connections.query, this.rows.table, key, owner);
    if (retryAfterMs === 0) return { ...attempt, retryAfterMs };
    this.#listener.lookOut.joined(key, owner);
    if (hears) this.#listener.trust();
    return { ...attempt, retryAfterMs: hears ? retryAfterMs : Math.min(retryAfterMs, this.#pollMs()) };
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    const waiter: Waiter = { wake };
    this.#waiters.set(owner, waiter);
    return () => {
      this.#waiters.delete(owner);
      waiter.leave?.();
    };
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#listener.close()]);
  }

  #enter(owner: string, wake: () => void): () => void {
    const unwatch = this.#wakeUps.watch(this.line.nameOf(owner), wake);
    const leave = this.#listener.lookOut.watch(owner);
    return () => {
      unwatch();
      leave();
    };
  }

  /** Grows with the number of waiters, as for every polled store. */
  #pollMs(): number {
    const shared = this.#listener.lookOut.size * POLL_MS_PER_WAITER;
    const pollMs = Math.min(LONGEST_POLL_MS, Math.max(DEAF_POLL_MS, shared));
    return pollMs / 2 + randomInt(pollMs);
  }
}
