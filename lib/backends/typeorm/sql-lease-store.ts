import {
  type BackendHealth,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  LockConfigurationError,
} from '../../core/index.js';
import type { OwnConnection } from './own-connection.js';
import type { SqlDialect } from './sql-dialect.js';

/** One row a key, one statement a step. Rows stay after release: the owner goes, the token stays and keeps growing. */
export class SqlLeaseStore implements LeaseStore {
  readonly guarantee = 'durable';
  #health: BackendHealth = { status: 'idle' };
  readonly #listeners = new Set<(health: BackendHealth) => void>();

  constructor(
    readonly name: string,
    private readonly table: string,
    private readonly dialect: SqlDialect,
    private readonly connection: OwnConnection,
  ) {}

  tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const lease = { key, owner, ttlMs: Math.ceil(ttlMs), metadata };
    return this.#watched(this.dialect.tryAcquire(this.connection.query, this.table, lease));
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#watched(
      this.dialect.renew(this.connection.query, this.table, { key, owner, ttlMs: Math.ceil(ttlMs) }),
    );
  }

  release(key: string, owner: string): Promise<boolean> {
    return this.#watched(this.dialect.release(this.connection.query, this.table, { key, owner }));
  }

  health(): BackendHealth {
    return this.#health;
  }

  onHealthChange(listener: (health: BackendHealth) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  async #watched<T>(answer: Promise<T>): Promise<T> {
    try {
      const result = await answer;
      this.#report({ status: 'up' });
      return result;
    } catch (error) {
      if (!(error instanceof LockConfigurationError)) this.#report({ status: 'down', detail: String(error) });
      throw error;
    }
  }

  #report(health: BackendHealth): void {
    const changed = health.status !== this.#health.status;
    this.#health = health;
    if (changed) for (const listener of this.#listeners) listener(health);
  }
}
