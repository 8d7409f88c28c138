import { randomInt } from 'node:crypto';
import {
  type Asker,
  Deadline,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  NotSentError,
  pause,
  systemClock,
} from '../../../core/index.js';
import { isRefusedValueError, isAnswer, refusedValueError } from '../connections/database-error.js';
import type { OwnConnections } from '../connections/own-connections.js';
import { UnansweredSessions } from '../connections/unanswered-sessions.js';
import { RowContender, type RowNews, type RowWaiter } from './row-contender.js';
import { RowLease } from './row-lease.js';
import { type RowTarget, RowTransaction } from './row-transaction.js';

const RETRY_MS = 50;

/**
 * Row locks as leases. A watched owner stands in the database's own line for the row, in the background and over
 * several questions, which tell what was learnt last. Any other owner asks once, and does not wait.
 */
export class RowLeaseStore implements LeaseStore {
  readonly guarantee = 'best-effort';
  readonly traits = { endsWith: 'connection' } as const;
  readonly #waiters = new Map<string, RowWaiter>();
  /** By owner, from the first question until it is known how it ended. */
  readonly #contenders = new Map<string, RowContender>();
  readonly #leases = new Map<string, RowLease>();
  /** Contenders that have not ended, also those who gave up. */
  readonly #underWay = new Set<Promise<unknown>>();

  private readonly target: Omit<RowTarget, 'key' | 'ttlMs'>;

  constructor(
    readonly name: string,
    target: Omit<RowTarget, 'key' | 'ttlMs' | 'unanswered'>,
    /** For those who only look: holders may have all of the pool's. Opened with the first look. */
    private readonly lookouts: OwnConnections,
  ) {
    const unanswered = new UnansweredSessions(target.locks.serverSessions, lookouts.query);
    this.target = { ...target, unanswered };
  }

  /** Opens a connection, which looks at the table. */
  async start(): Promise<void> {
    const { pool } = this.target;
    pool.release(await pool.take());
  }

  get health(): HealthSource {
    return this.target.pool.health;
  }

  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const waiter = this.#waiters.get(owner);
    if (waiter && asker) waiter.deadline = asker.deadline;
    const known = await this.#again(key, owner, asker);
    if (known) return known;
    return this.#insist(owner, async () => {
      const news = await this.#newsOf(key, owner, ttlMs);
      return news instanceof RowTransaction ? this.#take(news, owner, metadata, asker) : news;
    });
  }

  async renew(_key: string, owner: string): Promise<boolean> {
    return (await this.#leases.get(owner)?.renew()) === true;
  }

  /** A row that the wait still brings is given back then. */
  async release(_key: string, owner: string): Promise<boolean> {
    const [contender, lease] = [this.#contenders.get(owner), this.#leases.get(owner)];
    this.#contenders.delete(owner);
    this.#leases.delete(owner);
    await contender?.abandon();
    return lease ? lease.release() : false;
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    const { locks, table } = this.target;
    return locks.isHeldBy(this.lookouts.query, table, { key, owner });
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    this.#waiters.set(owner, { wake, deadline: Deadline.after(Infinity) });
    return () => this.#waiters.delete(owner);
  }

  async close(): Promise<void> {
    const ends = Array.from(this.#contenders.values(), (contender) => contender.abandon());
    await Promise.all([this.target.pool.close(), this.lookouts.close(), ...ends]);
    await Promise.all(this.#underWay);
  }

  /** The lease that the owner has already, if it is still good. */
  async #again(key: string, owner: string, asker: Asker | undefined): Promise<RowLease | undefined> {
    const lease = this.#leases.get(owner);
    if (!lease) return undefined;
    asker?.onSend();
    if (await lease.renew()) return lease;
    await this.release(key, owner);
    return undefined;
  }

  /** The core asks again for an owner who waits. For others a busy database is asked again here, for a while. */
  async #insist(owner: string, ask: () => Promise<LeaseAttempt>): Promise<LeaseAttempt> {
    const { locks, requestTimeoutMs } = this.target;
    const patience = Deadline.after(this.#waiters.has(owner) ? 0 : requestTimeoutMs);
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (isRefusedValueError(error)) throw refusedValueError(error);
        if (patience.passed || !isAnswer(error, locks.busy)) throw error;
      }
      await pause(systemClock, randomInt(RETRY_MS));
    }
  }

  /** The row and a failure are the last news of a contender. The next question begins anew. */
  async #newsOf(key: string, owner: string, ttlMs: number): Promise<RowNews> {
    const contender = this.#contenders.get(owner) ?? this.#contend(key, owner, ttlMs);
    try {
      const news = await contender.news;
      if (news instanceof RowTransaction) this.#contenders.delete(owner);
      return news;
    } catch (error) {
      this.#contenders.delete(owner);
      throw error;
    }
  }

  #contend(key: string, owner: string, askedTtlMs: number): RowContender {
    const target = { ...this.target, key, ttlMs: this.target.locks.row.ttlMs(askedTtlMs) };
    const contender = new RowContender(target, () => this.#waiters.get(owner));
    this.#contenders.set(owner, contender);
    this.#underWay.add(contender.over);
    void this.#onEnd(owner, contender);
    return contender;
  }

  /**
   * A contender without news is forgotten. An owner who asked in that moment was told to wait for it, and asks anew.
   */
  async #onEnd(owner: string, contender: RowContender): Promise<void> {
    const hasNews = await contender.over;
    this.#underWay.delete(contender.over);
    if (hasNews || this.#contenders.get(owner) !== contender) return;
    this.#contenders.delete(owner);
    this.#waiters.get(owner)?.wake();
  }

  async #take(
    row: RowTransaction,
    owner: string,
    metadata: HolderMetadata,
    asker: Asker | undefined,
  ): Promise<RowLease> {
    if (asker?.onSend() === false) {
      await row.end();
      throw new NotSentError();
    }
    const lease = await RowLease.take(row, owner, metadata);
    this.#leases.set(owner, lease);
    return lease;
  }
}
