import type { Guarantee, HealthSource, HolderMetadata, LeaseAttempt, LeaseStore } from '../../../core/index.js';
import type { OwnConnections } from '../connections/own-connections.js';
import type { LeaseStatements } from '../dialect/sql-dialect.js';
import { Reaper } from './reaper.js';

/** Where the leases are, and how they are reached. */
export interface LeaseTable {
  readonly name: string;
  readonly table: string;
  readonly statements: LeaseStatements;
  readonly connections: OwnConnections;
  readonly reapIdleAfterMs: number;
}

/** One row a key, one statement a step. Rows stay after release: the owner goes, the token stays and keeps growing. */
export class SqlLeaseStore implements LeaseStore {
  readonly name: string;
  /**
   * All who wait for different keys together ask about 200 times a second, and leave the connections to those who hold.
   */
  readonly pollMsPerWaiter = 5;
  readonly #reaper: Reaper | undefined;
  #guarantee: Guarantee = 'durable';

  constructor(protected readonly rows: LeaseTable) {
    this.name = rows.name;
    const { connections, statements, table, reapIdleAfterMs } = rows;
    if (Number.isFinite(reapIdleAfterMs)) {
      this.#reaper = new Reaper(connections.query, statements, table, reapIdleAfterMs);
    }
  }

  /** A server that does not flush gives no more than `best-effort`. Known once there is a connection. */
  get guarantee(): Guarantee {
    return this.#guarantee;
  }

  /** @param why a crash could make the server forget grants, and what to change */
  onForgetful(why: string | undefined): void {
    this.#guarantee = why === undefined ? 'durable' : 'best-effort';
    this.rows.connections.health.advise('flush', why);
  }

  tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const { statements, connections, table } = this.rows;
    return statements.tryAcquire(connections.query, table, { key, owner, ttlMs: Math.ceil(ttlMs), metadata });
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const { statements, connections, table } = this.rows;
    return statements.renew(connections.urgent, table, { key, owner, ttlMs: Math.ceil(ttlMs) });
  }

  release(key: string, owner: string): Promise<boolean> {
    const { statements, connections, table } = this.rows;
    return statements.release(connections.urgent, table, { key, owner });
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    const { statements, connections, table } = this.rows;
    return statements.isHeldBy(connections.query, table, { key, owner });
  }

  async start(): Promise<void> {
    await this.rows.connections.query('select 1', []);
  }

  get health(): HealthSource {
    return this.rows.connections.health;
  }

  close(): Promise<void> {
    this.#reaper?.close();
    return this.rows.connections.close();
  }
}
