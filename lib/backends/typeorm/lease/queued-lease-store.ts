import { randomInt } from 'node:crypto';
import type { HealthSource, HolderMetadata, LeaseAttempt, LeaseStore, WakeUps } from '../../../core/index.js';
import type { NotificationListener } from './notification-listener.js';
import type { OwnConnections } from '../connections/own-connections.js';
import type { WaitingLine } from '../dialect/sql-dialect.js';
import type { SqlLeaseStore } from './sql-lease-store.js';

/** How soon to ask again as long as grants are not heard of. */
const DEAF_POLL_MS = 50;
/** With jitter it is less than the time after which a waiter loses its place. */
const LONGEST_POLL_MS = 3_000;

/** A lease store whose server keeps those who wait in line, on the row, and hands the key to the first of them. */
export class QueuedLeaseStore implements LeaseStore {
  readonly name: string;

  constructor(
    private readonly store: SqlLeaseStore,
    private readonly table: string,
    private readonly line: WaitingLine,
    private readonly connections: OwnConnections,
    private readonly channel: NotificationListener,
    private readonly wakeUps: WakeUps,
  ) {
    this.name = store.name;
  }

  get guarantee(): SqlLeaseStore['guarantee'] {
    return this.store.guarantee;
  }

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const attempt = await this.store.tryAcquire(key, owner, ttlMs, metadata);
    const { lookOut } = this.channel;
    if (attempt.acquired || !lookOut.has(owner)) return attempt;
    const hears = this.channel.listen();
    const retryAfterMs = await this.line.join(this.connections.query, this.table, key, owner);
    if (retryAfterMs === 0) return { ...attempt, retryAfterMs };
    lookOut.joined(owner);
    if (hears) this.channel.trust();
    return { ...attempt, retryAfterMs: hears ? retryAfterMs : this.#askAgainAfter(retryAfterMs) };
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.store.renew(key, owner, ttlMs);
  }

  release(key: string, owner: string): Promise<boolean> {
    return this.store.release(key, owner);
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    return this.store.isHeldBy(key, owner);
  }

  watch(key: string, owner: string, wake: () => void): () => void {
    const unwatch = this.wakeUps.watch(this.line.nameOf(owner), wake);
    const leave = this.channel.lookOut.watch(key, owner);
    return () => {
      unwatch();
      leave();
    };
  }

  start(): Promise<void> {
    return this.store.start();
  }

  get health(): HealthSource {
    return this.store.health;
  }

  async close(): Promise<void> {
    await Promise.all([this.store.close(), this.channel.close()]);
  }

  /** The more keys are waited for, the later, as whoever polls a store does. */
  #askAgainAfter(retryAfterMs: number): number {
    const shared = this.channel.lookOut.size * this.store.pollMsPerWaiter;
    const pollMs = Math.min(LONGEST_POLL_MS, Math.max(DEAF_POLL_MS, shared));
    return Math.min(retryAfterMs, pollMs / 2 + randomInt(pollMs));
  }
}
