import {
  type Caller,
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
import { type ClaimReading, type ClaimStatements, CLAIMS_OWNER } from '../dialect/claim-statements.js';
import type { LeaseStatements } from '../dialect/lease-statements.js';
import { ClaimLineStorage } from './claim-line-storage.js';
import { reapRegularly } from './reaper.js';

export interface LeaseTable {
  readonly table: string;
  readonly statements: LeaseStatements;
  /** Absent for tables that older programs use. */
  readonly claims?: ClaimStatements;
  readonly reapIdleAfterMs: number;
}

/**
 * Milliseconds that each waiter adds to the interval between two polls. All waiters together poll about 200 times a
 * second, which leaves the server time for holders.
 */
export const POLL_MS_PER_WAITER = 5;

export class SqlLeaseStore implements LeaseStore {
  readonly name: string;
  readonly traits: StoreTraits;
  protected readonly settings: ConnectionSettings;
  protected readonly connections: OwnConnections;
  readonly #claims: ClaimLeases<ClaimReading> | undefined;
  /** Absent for tables that older programs use. */
  adopt?: NonNullable<LeaseStore['adopt']>;
  readonly #stopReaper: () => void;
  #guarantee: Guarantee = 'best-effort';

  constructor(
    protected readonly leaseTable: LeaseTable,
    connectionSettings: ConnectionSettings,
  ) {
    this.name = connectionSettings.database.name;
    const onOpen = async (query: Query): Promise<void> => {
      await connectionSettings.onOpen(query);
      this.#recordDurability(await connectionSettings.database.dialect.durabilityWarning?.(query, leaseTable.table));
    };
    this.settings = { ...connectionSettings, onOpen };
    this.connections = new OwnConnections(this.settings);
    this.traits = {
      pollMsPerWaiter: POLL_MS_PER_WAITER,
      ...(leaseTable.claims && { maxPermits: leaseTable.claims.maxPermits }),
    };
    if (leaseTable.claims) {
      const { maxPermits } = leaseTable.claims;
      const limits = { maxHolders: maxPermits, maxWaiters: maxPermits / 2 };
      const claims = new ClaimLeases(new ClaimLineStorage(leaseTable.claims, this.connections.urgentQuery), limits);
      this.#claims = claims;
      this.adopt = (key, transferredLease, adoptedLease) => claims.adopt(key, transferredLease, adoptedLease);
    }
    const reap = (idleMs: number): Promise<boolean> => leaseTable.statements.reap(this.connections.query, idleMs);
    this.#stopReaper = reapRegularly(reap, leaseTable.reapIdleAfterMs);
  }

  /** `best-effort` where a crash can undo grants, and until the first connection has checked the server's settings. */
  get guarantee(): Guarantee {
    return this.#guarantee;
  }

  #recordDurability(warning: string | undefined): void {
    this.#guarantee = warning === undefined ? 'durable' : 'best-effort';
    this.connections.health.setAdvice('durability', warning);
  }

  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    const lease = { key, owner, ttlMs: Math.ceil(ttlMs), metadata };
    if (this.#claims?.has(owner) !== true) {
      const attempt = await this.leaseTable.statements.tryAcquire(this.connections.query, lease);
      if (attempt.acquired || attempt.isHeldByClaims !== true || !this.#claims) return attempt;
    }
    const mayWait = caller !== undefined && !caller.deadline.passed;
    return this.#claims.tryAcquire(key, owner, lease.ttlMs, metadata, mayWait);
  }

  async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const lease = { key, owner, ttlMs: Math.ceil(ttlMs) };
    if (this.#claims?.has(owner) === true) return this.#claims.renew(key, owner, lease.ttlMs);
    return this.leaseTable.statements.renew(this.connections.urgentQuery, lease);
  }

  async passOn(key: string, owner: string, ttlMs: number): Promise<boolean> {
    const wasHeld = await this.renew(key, owner, ttlMs);
    this.#claims?.forget(owner);
    return wasHeld;
  }

  /** Releases the lease in the row, or the claim into which a `swap` may have changed it. */
  async release(key: string, owner: string): Promise<boolean> {
    const claims = this.#claims;
    const isClaim = claims?.has(owner) === true;
    if (isClaim && (await claims.release(key, owner))) return true;
    // A claim that waits behind an exclusive lease is in the row's list of waiters.
    if (await this.leaseTable.statements.release(this.connections.urgentQuery, { key, owner })) return true;
    return (await claims?.release(key, owner)) ?? false;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const claims = this.#claims;
    if (
      claims?.has(owner) !== true &&
      (await this.leaseTable.statements.isHeldBy(this.connections.query, { key, owner }))
    ) {
      return true;
    }
    return (await claims?.isHeldBy(key, owner)) ?? false;
  }

  async look(key: string): Promise<LeaseState> {
    const state = await this.leaseTable.statements.look(this.connections.query, key);
    if (state.holder?.owner !== CLAIMS_OWNER) return state;
    // The claims may have ended between the two reads.
    return (await this.#claims?.look(key)) ?? { waiters: [] };
  }

  async evict(key: string, owner: string): Promise<boolean> {
    const { holder } = await this.look(key);
    if (holder?.owner === owner && holder.leftMs === undefined) {
      const reason = `the row of ${owner} is an older program's, which nobody can tell: stop it, and delete the row`;
      throw new LockConfigurationError(reason, 'columns', key);
    }
    return this.release(key, owner);
  }

  keys(prefix: string): AsyncGenerator<readonly string[]> {
    return this.leaseTable.statements.keys(this.connections.query, prefix);
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
