import {
  type Caller,
  Deadline,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockConfigurationError,
  NotSentError,
  type StoreTraits,
} from '../../../core/index.js';
import { DatabaseError } from '../connections/database-error.js';
import { DatabaseHealth } from '../connections/database-health.js';
import type { Query } from '../connections/query.js';
import type { OwnedKey } from '../dialect/lease-statements.js';
import { parseState } from '../dialect/refusal.js';
import { TimeoutError, settleByDeadline } from '../connections/timeout.js';
import { UnansweredSessions } from '../connections/unanswered-sessions.js';
import { CurrentSession } from './current-session.js';
import { lockKey } from './lock-key.js';
import type { LockSession, SessionSettings } from './lock-session.js';
import { UnansweredGrants } from './unanswered-grants.js';

/** Reservation of a key for one owner. The server would also grant the key to other owners on the same session. */
interface KeyReservation {
  readonly owner: string;
  readonly metadata: HolderMetadata;
  readonly session: LockSession;
  readonly attempt: Promise<LeaseAttempt>;
  /** Time at which an attempt without an answer counts as a silence of the database. */
  readonly answerDeadline: Deadline;
  isAcquired: boolean;
}

/** Store of locks of a server's session. A request that timed out keeps its reservation until the server answers. */
export class SessionLeaseStore implements LeaseStore {
  readonly name: string;
  readonly guarantee = 'best-effort';
  /** All waiters of a process ask over one connection, so each waiter lengthens the pauses of all. */
  readonly traits = { endsWith: 'connection', pollMsPerWaiter: 5 } satisfies StoreTraits;
  readonly #reservations = new Map<string, KeyReservation>();
  readonly #currentSession: CurrentSession;
  readonly #unansweredSessions: UnansweredSessions;
  readonly #unansweredGrants = new UnansweredGrants();
  readonly health = new DatabaseHealth(() => this.start());

  constructor(
    private readonly settings: SessionSettings,
    private readonly requestTimeoutMs: number,
  ) {
    this.name = `${settings.database.name}-session`;
    this.#currentSession = new CurrentSession(settings, (...args) => this.#handleSessionEnd(...args));
    const query: Query = async (...statement) => (await this.#getSession()).query(...statement);
    this.#unansweredSessions = new UnansweredSessions(settings.locks.serverSessions, query);
  }

  async start(): Promise<void> {
    await this.#runInTimeAndReport(async () => (await this.#getSession()).heartbeat());
  }

  tryAcquire(
    key: string,
    owner: string,
    _ttlMs: number,
    metadata: HolderMetadata,
    caller?: Caller,
  ): Promise<LeaseAttempt> {
    let isFromDatabase = true;
    let wasSent = false;
    const acquireOnce = async (): Promise<LeaseAttempt> => {
      isFromDatabase = true;
      const session = await this.#getSession();
      // A caller that has given up has called `release` already. A lock that is taken now would never be released.
      if (caller?.onSend() === false)
        throw wasSent ? new TimeoutError('the database gave no answer') : new NotSentError();
      wasSent = true;
      const reservation = this.#reservations.get(key);
      if (reservation && reservation.owner !== owner) {
        if (!reservation.isAcquired && reservation.answerDeadline.passed)
          throw new TimeoutError('the database gave no answer');
        isFromDatabase = false;
        return { acquired: false, retryAfterMs: null, holder: reservation.metadata };
      }
      return reservation ? this.#confirmReservation(key, reservation) : this.#reserveKey(session, key, owner, metadata);
    };
    return this.health.reportOutcomeOf(this.#retryOnNewSession(acquireOnce), () => isFromDatabase);
  }

  async renew(key: string, owner: string): Promise<boolean> {
    const reservation = this.#reservations.get(key);
    if (reservation?.owner !== owner) return false;
    return this.#runInTimeAndReport(async () => {
      try {
        await reservation.session.heartbeat();
      } catch (error) {
        if (!reservation.session.endSignal.aborted) throw error;
      }
      return this.#reservations.get(key) === reservation;
    });
  }

  async release(key: string, owner: string): Promise<boolean> {
    const reservation = this.#reservations.get(key);
    if (reservation?.owner !== owner) {
      // Nothing was sent, so `health` must not report that the database is up.
      if (!this.#unansweredGrants.has(key)) return false;
      return this.#runInTimeAndReport(async () => this.#takeBack(await this.#getSession(), key));
    }
    const { acquired } = await this.#runInTime(() => reservation.attempt.catch(() => ({ acquired: false })));
    if (!acquired || this.#reservations.get(key) !== reservation) return false;
    return this.#runInTimeAndReport(async () => {
      await this.settings.locks.unlock(reservation.session.query, reservation.session.getLockNames(key, owner));
      this.#removeReservation(key, reservation);
      return true;
    });
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    return this.#runInTimeAndReport(async () => {
      const session = await this.#getSession();
      return (await session.findSessionHolding(key, owner)) !== undefined;
    });
  }

  look(key: string): Promise<LeaseState> {
    return this.#runInTimeAndReport(async () => {
      const session = await this.#getSession();
      const [row] = await this.settings.locks.keyRow.read(session.query, this.settings.table, key);
      const owner = row?.['owner'];
      return typeof owner === 'string' && (await session.findSessionHolding(key, owner)) !== undefined
        ? parseState(row)
        : {};
    });
  }

  /**
   * Rejects with an error that shows the statement for ending the session. All locks of a process end with its session,
   * so a person must decide.
   */
  evict(key: string, owner: string): Promise<boolean> {
    return this.#runInTimeAndReport(async () => {
      const session = await this.#getSession();
      const id = await session.findSessionHolding(key, owner);
      if (id === undefined) return false;
      const message = `${this.name} cannot evict, for all locks of a process end with its session`;
      throw new LockConfigurationError(`${message}: ${this.settings.locks.terminateSessionSql(id)}`, 'strategy', key);
    });
  }

  async close(): Promise<void> {
    this.health.end();
    await this.#currentSession.close();
  }

  /** Locks the key. After a refusal, takes the key from a lost session of this process, if one has it, and retries. */
  async #lockWithTakeBack(session: LockSession, ownedKey: OwnedKey, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const attempt = await lockKey(this.settings, session, ownedKey, metadata);
    if (attempt.acquired || !(await this.#takeBack(session, ownedKey.key))) return attempt;
    return lockKey(this.settings, session, ownedKey, metadata);
  }

  /** Frees a key that the server granted to a lost session of this process. Resolves to whether there was a grant. */
  async #takeBack(session: LockSession, key: string): Promise<boolean> {
    await this.#unansweredSessions.assertNoSessionWorking(key);
    return this.#unansweredGrants.has(key) && this.#unansweredGrants.takeBack(session, key, this.requestTimeoutMs);
  }

  /** Ends a silent session without locks. Returns whether the session has ended, so that a new one may help. */
  #endIfSilent(session: LockSession, error: unknown): boolean {
    const isSilent = error instanceof TimeoutError && session.quietMs >= this.requestTimeoutMs;
    if (isSilent && !session.endSignal.aborted && !this.#hasLocks(session)) {
      session.destroy();
      this.health.reportReplacement('the connection for the locks');
    }
    return session.endSignal.aborted && !this.#currentSession.isClosed;
  }

  #hasLocks(session: LockSession): boolean {
    return Array.from(this.#reservations.values()).some(
      (reservation) => reservation.session === session && reservation.isAcquired,
    );
  }

  async #reserveKey(session: LockSession, key: string, owner: string, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const attempt = this.#lockWithTakeBack(session, { key, owner }, metadata);
    const answerDeadline = Deadline.after(this.requestTimeoutMs);
    const reservation: KeyReservation = { owner, metadata, session, attempt, answerDeadline, isAcquired: false };
    this.#reservations.set(key, reservation);
    try {
      const { acquired } = await attempt;
      reservation.isAcquired = acquired;
      if (!acquired) this.#removeReservation(key, reservation);
      return await attempt;
    } catch (error) {
      this.#removeReservation(key, reservation);
      throw error;
    }
  }

  /** Confirms a reservation whose owner requests the key again. The TTL starts anew, so the server must answer. */
  async #confirmReservation(key: string, reservation: KeyReservation): Promise<LeaseAttempt> {
    const attempt = await reservation.attempt;
    if (attempt.acquired) await reservation.session.heartbeat();
    return this.#reservations.get(key) === reservation ? attempt : { acquired: false, retryAfterMs: 0 };
  }

  #removeReservation(key: string, reservation: KeyReservation): void {
    if (this.#reservations.get(key) === reservation) this.#reservations.delete(key);
  }

  #getSession(): Promise<LockSession> {
    return this.#currentSession.get(this.#reservations.size > 0);
  }

  /** Runs before the leases of the session learn of its end. */
  #handleSessionEnd(session: LockSession, wasReplaced: boolean): void {
    let lostLockCount = 0;
    for (const [key, reservation] of this.#reservations) {
      if (reservation.session !== session) continue;
      this.#reservations.delete(key);
      if (reservation.isAcquired) lostLockCount += 1;
      else {
        this.#unansweredGrants.remember(key, reservation.owner);
        this.#unansweredSessions.rememberSession(key, this.settings.locks.serverSessions.getSessionId(session.client));
      }
    }
    const { reason } = session.endSignal;
    const message = reason instanceof DatabaseError ? reason.message : 'the connection with the locks was lost';
    if (lostLockCount > 0) this.health.reportDown(message);
    else if (!wasReplaced) this.health.report('idle');
  }

  async #retryOnNewSession<T>(request: () => Promise<T>): Promise<T> {
    const usedSession = this.#currentSession.openSession;
    try {
      return await this.#runInTime(request);
    } catch (error) {
      if (!usedSession || !this.#endIfSilent(usedSession, error)) throw error;
      return this.#runInTime(request);
    }
  }

  #runInTimeAndReport<T>(request: () => Promise<T>): Promise<T> {
    return this.health.reportOutcomeOf(this.#runInTime(request));
  }

  #runInTime<T>(request: () => Promise<T>): Promise<T> {
    return settleByDeadline(Deadline.after(this.requestTimeoutMs), 'the database gave no answer', request());
  }
}
