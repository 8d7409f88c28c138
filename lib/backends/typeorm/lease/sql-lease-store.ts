import {
  type HealthSource,
  type Guarantee,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
} from '../../../core/index.js';
import type { OwnConnections } from '../connections/own-connections.js';
import type { Reaper } from './reaper.js';
import type { LeaseStatements } from '../dialect/sql-dialect.js';

/** One row a key, one statement a step. Rows stay after release: the owner goes, the token stays and keeps growing. */
export class SqlLeaseStore implements LeaseStore {
  #guarantee: Guarantee = 'durable';
  /** All who wait for different keys together ask about 200 times a second, and leave the connections to those who hold. */
  readonly pollMsPerWaiter = 5;

  constructor(
    readonly name: string,
    private readonly table: string,
    private readonly statements: LeaseStatements,
    private readonly connections: OwnConnections,
    private readonly reaper?: Reaper,
  ) {}

  /** Of a server that does not flush nobody can say more than `best-effort`; known once there is a connection. */
  get guarantee(): Guarantee {
    return this.#guarantee;
  }

  /** @param why a crash could make the server forget grants, and what to change */
  onForgetful(why: string | undefined): void {
    this.#guarantee = why === undefined ? 'durable' : 'best-effort';
    this.connections.health.advise('flush', why);
  }

  tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const lease = { key, owner, ttlMs: Math.ceil(ttlMs), metadata };
    return this.statements.tryAcquire(this.connections.query, this.table, lease);
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.statements.renew(this.connections.urgent, this.table, { key, owner, ttlMs: Math.ceil(ttlMs) });
  }

  release(key: string, owner: string): Promise<boolean> {
    return this.statements.release(this.connections.urgent, this.table, { key, owner });
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    return this.statements.isHeldBy(this.connections.query, this.table, { key, owner });
  }

  async start(): Promise<void> {
    await this.connections.query('select 1', []);
  }

  get health(): HealthSource {
    return this.connections.health;
  }

  close(): Promise<void> {
    this.reaper?.close();
    return this.connections.close();
  }
}
