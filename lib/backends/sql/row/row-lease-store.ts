import { randomInt } from 'node:crypto';
import {
  type Caller,
  Deadline,
  type HealthSource,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseStore,
  NotSentError,
  pause,
  systemClock,
  type StoreTraits,
} from '../../../core/index.js';
import { isRefusedValueError, hasErrorCode, createRefusedValueError } from '../connections/database-error.js';
import type { OwnConnections } from '../connections/own-connections.js';
import { UnansweredSessions } from '../connections/unanswered-sessions.js';
import { RowContender, type RowOutcome, type RowWaiter } from './row-contender.js';
import { RowLease } from './row-lease.js';
import { type RowTarget, RowTransaction } from './row-transaction.js';

const MAX_RETRY_PAUSE_MS = 50;

/**
 * Store of locks on rows. An owner for which `watch` was called waits for the row in the database's own queue. Each
 * `tryAcquire` of that owner returns the latest outcome. Any other owner requests the row once, and does not wait.
 */
export class RowLeaseStore implements LeaseStore {
  readonly guarantee = 'best-effort';
  readonly traits = { endsWith: 'connection' } satisfies StoreTraits;
  readonly #waiters = new Map<string, RowWaiter>();
  /** Contenders by owner. One that ended with a row or a failure stays until its owner has received that outcome. */
  readonly #contenders = new Map<string, RowContender>();
  readonly #leases = new Map<string, RowLease>();
  /** Completions of all contenders that still run, also of abandoned ones. */
  readonly #contenderCompletions = new Set<Promise<unknown>>();

  /** Part of a `RowTarget` that is the same for all keys. */
  private readonly target: Omit<RowTarget, 'key' | 'ttlMs'>;

  constructor(
    readonly name: string,
    target: Omit<RowTarget, 'key' | 'ttlMs' | 'unansweredSessions'>,
    /** Connections for `isHeldBy`, because holders may use all connections of the pool. */
    private readonly checkConnections: OwnConnections,
  ) {
    const unansweredSessions = new UnansweredSessions(target.locks.serverSessions, checkConnections.query);
    this.target = { ...target, unansweredSessions };
  }

  /** Opens a connection, which checks the table. */
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
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    const waiter = this.#waiters.get(owner);
    if (waiter && caller) waiter.deadline = caller.deadline;
    const existingLease = await this.#renewExistingLease(key, owner, caller);
    if (existingLease) return existingLease;
    return this.#retryWhileBusy(owner, async () => {
      const outcome = await this.#getOutcome(key, owner, ttlMs);
      return outcome instanceof RowTransaction ? this.#createLease(outcome, owner, metadata, caller) : outcome;
    });
  }

  async renew(_key: string, owner: string): Promise<boolean> {
    return (await this.#leases.get(owner)?.renew()) === true;
  }

  async release(_key: string, owner: string): Promise<boolean> {
    const [contender, lease] = [this.#contenders.get(owner), this.#leases.get(owner)];
    this.#contenders.delete(owner);
    this.#leases.delete(owner);
    await contender?.abandon();
    return lease ? lease.release() : false;
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    const { locks, table } = this.target;
    return locks.isHeldBy(this.checkConnections.query, table, { key, owner });
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    this.#waiters.set(owner, { wake, deadline: Deadline.after(Infinity) });
    return () => this.#waiters.delete(owner);
  }

  async close(): Promise<void> {
    const ends = Array.from(this.#contenders.values(), (contender) => contender.abandon());
    await Promise.all([this.target.pool.close(), this.checkConnections.close(), ...ends]);
    await Promise.all(this.#contenderCompletions);
  }

  async #renewExistingLease(key: string, owner: string, caller: Caller | undefined): Promise<RowLease | undefined> {
    const lease = this.#leases.get(owner);
    if (!lease) return undefined;
    caller?.onSend();
    if (await lease.renew()) return lease;
    await this.release(key, owner);
    return undefined;
  }

  /** Repeats an attempt that failed with a code of `busyCodePattern`. For owners who wait, only the core retries. */
  async #retryWhileBusy(owner: string, attempt: () => Promise<LeaseAttempt>): Promise<LeaseAttempt> {
    const { locks, requestTimeoutMs } = this.target;
    const retryDeadline = Deadline.after(this.#waiters.has(owner) ? 0 : requestTimeoutMs);
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        if (isRefusedValueError(error)) throw createRefusedValueError(error);
        if (retryDeadline.passed || !hasErrorCode(error, locks.busyCodePattern)) throw error;
      }
      await pause(systemClock, randomInt(MAX_RETRY_PAUSE_MS));
    }
  }

  async #getOutcome(key: string, owner: string, ttlMs: number): Promise<RowOutcome> {
    const contender = this.#contenders.get(owner) ?? this.#startContender(key, owner, ttlMs);
    try {
      const outcome = await contender.outcome;
      if (outcome instanceof RowTransaction) this.#contenders.delete(owner);
      return outcome;
    } catch (error) {
      this.#contenders.delete(owner);
      throw error;
    }
  }

  #startContender(key: string, owner: string, requestedTtlMs: number): RowContender {
    const target = { ...this.target, key, ttlMs: this.target.locks.keyRow.roundUpTtl(requestedTtlMs) };
    const contender = new RowContender(target, () => this.#waiters.get(owner));
    this.#contenders.set(owner, contender);
    this.#contenderCompletions.add(contender.completion);
    void this.#removeWhenEnded(owner, contender);
    return contender;
  }

  /** Removes a contender that ended with a refusal. Wakes the owner, which may have been told to wait meanwhile. */
  async #removeWhenEnded(owner: string, contender: RowContender): Promise<void> {
    const endedWithRowOrFailure = await contender.completion;
    this.#contenderCompletions.delete(contender.completion);
    if (endedWithRowOrFailure || this.#contenders.get(owner) !== contender) return;
    this.#contenders.delete(owner);
    this.#waiters.get(owner)?.wake();
  }

  async #createLease(
    row: RowTransaction,
    owner: string,
    metadata: HolderMetadata,
    caller: Caller | undefined,
  ): Promise<RowLease> {
    if (caller?.onSend() === false) {
      await row.end();
      throw new NotSentError();
    }
    const lease = await RowLease.grant(row, owner, metadata);
    this.#leases.set(owner, lease);
    return lease;
  }
}
