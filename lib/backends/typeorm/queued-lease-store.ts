import type { BackendHealth, HolderMetadata, LeaseAttempt, LeaseStore } from '../../core/index.js';
import { TOKEN_STEP } from '../../core/hand-off-limits.js';
import type { Waiters } from '../../core/waiters.js';
import type { GrantChannel } from './grant-channel.js';
import type { OwnConnections } from './own-connections.js';
import type { WaitingLine } from './sql-dialect.js';
import type { SqlLeaseStore } from './sql-lease-store.js';

/** How soon to ask again as long as grants are not heard of. */
const DEAF_POLL_MS = 50;

/** A lease store whose server keeps those who wait in line, on the row, and hands the key to the first of them. */
export class QueuedLeaseStore implements LeaseStore {
  readonly name: string;
  readonly guarantee: SqlLeaseStore['guarantee'];
  readonly tokenStep = TOKEN_STEP;

  constructor(
    private readonly store: SqlLeaseStore,
    private readonly table: string,
    private readonly line: WaitingLine,
    private readonly connections: OwnConnections,
    private readonly channel: GrantChannel,
    private readonly waiters: Waiters,
  ) {
    this.name = store.name;
    this.guarantee = store.guarantee;
  }

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const attempt = await this.store.tryAcquire(key, owner, ttlMs, metadata);
    if (attempt.acquired || !this.waiters.has(owner)) return attempt;
    const hears = this.channel.listen();
    const inLine = await this.line.join(this.connections.query, this.table, key, owner);
    if (!inLine) return { ...attempt, retryAfterMs: 0 };
    return hears ? attempt : { ...attempt, retryAfterMs: Math.min(attempt.retryAfterMs ?? DEAF_POLL_MS, DEAF_POLL_MS) };
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

  watch(_key: string, owner: string, wake: () => void): () => void {
    return this.waiters.watch(owner, wake);
  }

  start(): Promise<void> {
    return this.store.start();
  }

  health(): BackendHealth {
    return this.store.health();
  }

  onHealthChange(listener: (health: BackendHealth) => void): () => void {
    return this.store.onHealthChange(listener);
  }

  async close(): Promise<void> {
    await Promise.all([this.store.close(), this.channel.close()]);
  }
}
