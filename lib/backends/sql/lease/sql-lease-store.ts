import {
  type Asker,
  ClaimLeases,
  type Guarantee,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockConfigurationError,
  type StoreTraits,
} from '../../../core/index.js';
import type { ConnectionSettings } from '../connections/own-connection.js';
import { OwnConnections } from '../connections/own-connections.js';
import type { Query } from '../connections/query.js';
import { type ClaimReading, type ClaimStatements, LINE_OWNER } from '../dialect/claim-statements.js';
import type { LeaseStatements } from '../dialect/lease-statements.js';
import { ClaimCell } from './claim-cell.js';
import { reapRegularly } from './reaper.js';

/** Where the leases are, and what is done to them. */
export interface LeaseTable {
  readonly table: string;
  readonly statements: LeaseStatements;
  /** Where several may hold a key. */
  readonly claims?: ClaimStatements;
  readonly reapIdleAfterMs: number;
}

/** With it all waiters together ask about 200 times a second, and leave the connections to the holders. */
export const POLL_MS_PER_WAITER = 5;

/** One row a key, one statement a step. Rows stay after release: the owner goes, the token stays and keeps growing. */
export class SqlLeaseStore implements LeaseStore {
  readonly name: string;
  readonly traits: StoreTraits;
  protected readonly settings: ConnectionSettings;
  protected readonly connections: OwnConnections;
  readonly #claims: ClaimLeases<ClaimReading> | undefined;
  readonly #stopReaper: () => void;
  #guarantee: Guarantee = 'best-effort';

  constructor(
    protected readonly rows: LeaseTable,
    given: ConnectionSettings,
  ) {
    this.name = given.database.name;
    const onOpen = async (query: Query): Promise<void> => {
      await given.onOpen(query);
      this.#onDurabilityWarning(await given.database.dialect.durabilityWarning?.(query, rows.table));
    };
    this.settings = { ...given, onOpen };
    this.connections = new OwnConnections(this.settings);
    this.traits = { pollMsPerWaiter: POLL_MS_PER_WAITER, ...(rows.claims && { maxPermits: rows.claims.maxPermits }) };
    if (rows.claims) {
      // Beside the holders there is room for half as many who wait; others wait outside of the line.
      const mostInLine = rows.claims.maxPermits * 1.5;
      this.#claims = new ClaimLeases(new ClaimCell(rows.claims, this.connections.urgent), mostInLine);
    }
    const reap = (idleMs: number): Promise<boolean> => rows.statements.reap(this.connections.query, idleMs);
    this.#stopReaper = reapRegularly(reap, rows.reapIdleAfterMs);
  }

  /**
   * A server that does not flush, or a table that a crash empties, gives no more than `best-effort`. Nobody knows before
   * there is a connection, and until then no more is promised.
   */
  get guarantee(): Guarantee {
    return this.#guarantee;
  }

  #onDurabilityWarning(warning: string | undefined): void {
    this.#guarantee = warning === undefined ? 'durable' : 'best-effort';
    this.connections.health.setAdvice('durability', warning);
  }

  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const lease = { key, owner, ttlMs: Math.ceil(ttlMs), metadata };
    if (this.#claims?.has(owner) !== true) {
      const attempt = await this.rows.statements.tryAcquire(this.connections.query, lease);
      if (attempt.acquired || attempt.meetsLine !== true || !this.#claims) return attempt;
    }
    const waits = asker !== undefined && !asker.deadline.passed;
    return this.#claims.tryAcquire(key, owner, lease.ttlMs, metadata, waits);
  }

  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const lease = { key, owner, ttlMs: Math.ceil(ttlMs) };
    if (this.#claims?.has(owner) === true) return this.#claims.renew(key, owner, lease.ttlMs);
    return this.rows.statements.renew(this.connections.urgent, lease);
  }

  /** A line may have taken an owner along who never asked there. */
  async release(key: string, owner: string): Promise<boolean> {
    const claims = this.#claims;
    if (claims?.has(owner) !== true && (await this.rows.statements.release(this.connections.urgent, { key, owner }))) {
      return true;
    }
    return (await claims?.release(key, owner)) ?? false;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const claims = this.#claims;
    if (claims?.has(owner) !== true && (await this.rows.statements.isHeldBy(this.connections.query, { key, owner }))) {
      return true;
    }
    return (await claims?.isHeldBy(key, owner)) ?? false;
  }

  async look(key: string): Promise<LeaseState> {
    const state = await this.rows.statements.look(this.connections.query, key);
    return (state.holder?.owner === LINE_OWNER ? await this.#claims?.look(key) : undefined) ?? state;
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
