import { randomInt } from 'node:crypto';
import { type HolderMetadata, type LeaseAttempt, WakeUps } from '../../../core/index.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import { NotificationListener } from './notification-listener.js';
import { type LeaseTable, SqlLeaseStore } from './sql-lease-store.js';

/** The pause between two questions as long as no notifications arrive. */
const DEAF_POLL_MS = 50;
/** With jitter it is less than the time after which a waiter loses its place. */
const LONGEST_POLL_MS = 3_000;

/** A lease store whose server keeps those who wait in line, on the row, and hands the key to the first of them. */
export class QueuedLeaseStore extends SqlLeaseStore {
  readonly #wakeUps = new WakeUps();
  readonly #listener: NotificationListener;

  constructor(
    rows: LeaseTable,
    private readonly line: WaitingLine,
    settings: ConnectionSettings,
  ) {
    super(rows, settings);
    this.#listener = new NotificationListener(this.settings, this.connections, rows.table, line, this.#wakeUps);
  }

  override async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata) {
    const attempt: LeaseAttempt = await super.tryAcquire(key, owner, ttlMs, metadata);
    const { lookOut } = this.#listener;
    if (attempt.acquired || !lookOut.has(owner)) return attempt;
    const hears = this.#listener.listen();
    const retryAfterMs = await this.line.join(this.connections.query, this.rows.table, key, owner);
    if (retryAfterMs === 0) return { ...attempt, retryAfterMs };
    lookOut.joined(key, owner);
    if (hears) this.#listener.trust();
    return { ...attempt, retryAfterMs: hears ? retryAfterMs : Math.min(retryAfterMs, this.#pollMs()) };
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    const unwatch = this.#wakeUps.watch(this.line.nameOf(owner), wake);
    const leave = this.#listener.lookOut.watch(owner);
    return () => {
      unwatch();
      leave();
    };
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#listener.close()]);
  }

  /** Grows with the number of waiters, as for every polled store. */
  #pollMs(): number {
    const shared = this.#listener.lookOut.size * this.pollMsPerWaiter;
    const pollMs = Math.min(LONGEST_POLL_MS, Math.max(DEAF_POLL_MS, shared));
    return pollMs / 2 + randomInt(pollMs);
  }
}
