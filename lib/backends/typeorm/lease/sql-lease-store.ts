import {
  type Guarantee,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockConfigurationError,
} from '../../../core/index.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import { OwnConnections } from '../connections/own-connections.js';
import type { Query } from '../connections/query.js';
import type { LeaseStatements } from '../dialect/lease-statements.js';
import { reapRegularly } from './reaper.js';

/** Where the leases are, and what is done to them. */
export interface LeaseTable {
  readonly table: string;
  readonly statements: LeaseStatements;
  readonly reapIdleAfterMs: number;
}

/** One row a key, one statement a step. Rows stay after release: the owner goes, the token stays and keeps growing. */
export class SqlLeaseStore implements LeaseStore {
  readonly name: string;
  /**
   * All who wait for different keys together ask about 200 times a second, and leave the connections to those who hold.
   */
  readonly pollMsPerWaiter = 5;
  protected readonly settings: ConnectionSettings;
  protected readonly connections: OwnConnections;
  readonly #stopReaper: () => void;
  #guarantee: Guarantee = 'durable';

  constructor(
    protected readonly rows: LeaseTable,
    given: ConnectionSettings,
  ) {
    this.name = `typeorm:${given.options.type}`;
    const onOpen = async (query: Query): Promise<void> => {
      await given.onOpen(query);
      this.#onForgetful(await given.dialect.forgets?.(query));
    };
    this.settings = { ...given, onOpen };
    this.connections = new OwnConnections(this.settings);
    const reap = (idleMs: number): Promise<boolean> => rows.statements.reap(this.connections.query, idleMs);
    this.#stopReaper = reapRegularly(reap, rows.reapIdleAfterMs);
  }

  /** A server that does not flush gives no more than `best-effort`. Known once there is a connection. */
  get guarantee(): Guarantee {
    return this.#guarantee;
  }

  /** @param why a crash could make the server forget grants, and what to change */
  #onForgetful(why: string | undefined): void {
    this.#guarantee = why === undefined ? 'durable' : 'best-effort';
    this.connections.health.advise('flush', why);
  }

  tryAcquire(key: string, owner: string, ttlMs: number, metadata: HolderMetadata): Promise<LeaseAttempt> {
    return this.rows.statements.tryAcquire(this.connections.query, { key, owner, ttlMs: Math.ceil(ttlMs), metadata });
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.rows.statements.renew(this.connections.urgent, { key, owner, ttlMs: Math.ceil(ttlMs) });
  }

  release(key: string, owner: string): Promise<boolean> {
    return this.rows.statements.release(this.connections.urgent, { key, owner });
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    return this.rows.statements.isHeldBy(this.connections.query, { key, owner });
  }

  look(key: string): Promise<LeaseState> {
    return this.rows.statements.look(this.connections.query, key);
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const { holder } = await this.look(key);
    if (holder?.owner === owner && holder.leftMs === undefined) {
      const why = `the row of ${owner} is an older program's, which nobody can tell: stop it, and delete the row`;
      throw new LockConfigurationError(why, 'columns', key);
    }
    return this.release(key, owner);
  }

  keys(prefix: string): AsyncGenerator<readonly string[]> {
    return this.rows.statements.keys(this.connections.query, prefix);
  }

  async start(): Promise<void> {
    await this.connections.query('select 1', []);
  }

  get health(): HealthSource {
    return this.connections.health;
  }

  close(): Promise<void> {
    this.#stopReaper();
    return this.connections.close();
  }
}
