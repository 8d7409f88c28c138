import type { BackendHealth, HolderMetadata, LeaseAttempt, LeaseStore } from '../../core/index.js';
import type { OwnConnections } from './own-connections.js';
import type { ReleaseChannel } from './release-channel.js';
import type { WakeUps } from './sql-dialect.js';
import type { SqlLeaseStore } from './sql-lease-store.js';

/** How soon to ask again as long as releases are not heard of. */
const DEAF_POLL_MS = 50;

/** A lease store whose server wakes those who wait. They say so on the row, so that a release that nobody awaits is silent. */
export class AnnouncedLeaseStore implements LeaseStore {
  readonly name: string;
  readonly guarantee: SqlLeaseStore['guarantee'];

  constructor(
    private readonly store: SqlLeaseStore,
    private readonly table: string,
    private readonly wakeUps: WakeUps,
    private readonly connections: OwnConnections,
    private readonly channel: ReleaseChannel,
  ) {
    this.name = store.name;
    this.guarantee = store.guarantee;
  }

  async tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const attempt = await this.store.tryAcquire(key, owner, ttlMs, metadata);
    if (attempt.acquired || !this.channel.isAwaited(key)) return attempt;
    if (!this.channel.listen()) {
      return { ...attempt, retryAfterMs: Math.min(attempt.retryAfterMs ?? DEAF_POLL_MS, DEAF_POLL_MS) };
    }
    const announced = await this.wakeUps.await(this.connections.query, this.table, key);
    return announced ? attempt : { ...attempt, retryAfterMs: 0 };
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

  watch(key: string, _owner: string, wake: () => void): () => void {
    return this.channel.watch(key, wake);
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
