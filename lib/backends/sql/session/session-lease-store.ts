import {
  type Asker,
  Deadline,
  type HolderMetadata,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  LockConfigurationError,
  NotSentError,
} from '../../../core/index.js';
import { DatabaseError, isReadOnlyError, switchOverError } from '../connections/database-error.js';
import { DatabaseHealth } from '../connections/database-health.js';
import { isTrue, type Query } from '../connections/query.js';
import { raiseToken } from '../dialect/key-row.js';
import { readRefusal, readState } from '../dialect/refusal.js';
import { TimeoutError, within } from '../connections/timeout.js';
import { UnansweredSessions } from '../connections/unanswered-sessions.js';
import { CurrentSession } from './current-session.js';
import type { LockSession, SessionSettings } from './lock-session.js';

/** The owner of this process that has a key, or is asking for it. The session itself would let everybody of us in. */
interface Claim {
  readonly owner: string;
  readonly metadata: HolderMetadata;
  readonly session: LockSession;
  readonly attempt: Promise<LeaseAttempt>;
  /** Time at which an attempt without an answer counts as a silence of the database. */
  readonly overdue: Deadline;
  acquired: boolean;
}

/** The locks of one session at a time. A statement that we stopped waiting for keeps its claim until it is answered. */
export class SessionLeaseStore implements LeaseStore {
  readonly name: string;
  readonly guarantee = 'best-effort';
  /** One connection serves all waiters. */
  readonly traits = { endsWith: 'connection', pollMsPerWaiter: 5 } as const;
  readonly #claims = new Map<string, Claim>();
  readonly #session: CurrentSession;
  readonly #unanswered: UnansweredSessions;
  readonly health = new DatabaseHealth(() => this.start());

  constructor(
    private readonly settings: SessionSettings,
    private readonly requestTimeoutMs: number,
  ) {
    this.name = `${settings.database.name}-session`;
    this.#session = new CurrentSession(settings, (session) => this.#onEnd(session));
    const query: Query = async (...statement) => (await this.#connected()).query(...statement);
    this.#unanswered = new UnansweredSessions(settings.locks.serverSessions, query);
  }

  async start(): Promise<void> {
    await this.#inTime(async () => (await this.#connected()).heartbeat());
  }

  tryAcquire(
    key: string,
    owner: string,
    _ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    let isFromDatabase = true;
    const attempt = async (): Promise<LeaseAttempt> => {
      isFromDatabase = true;
      const session = await this.#connected();
      // The release of one who gave up meanwhile has found no claim, and nobody would give this lock back.
      if (asker?.onSend() === false) throw new NotSentError();
      const claim = this.#claims.get(key);
      if (claim && claim.owner !== owner) {
        if (!claim.acquired && claim.overdue.passed) throw new TimeoutError('the database gave no answer');
        isFromDatabase = false;
        return { acquired: false, retryAfterMs: null, holder: claim.metadata };
      }
      return claim ? this.#again(key, claim) : this.#ask(session, key, owner, metadata);
    };
    return this.health.reportOutcomeOf(this.#onSome(attempt), () => isFromDatabase);
  }

  async renew(key: string, owner: string): Promise<boolean> {
    const claim = this.#claims.get(key);
    if (claim?.owner !== owner) return false;
    return this.#inTime(async () => {
      try {
        await claim.session.heartbeat();
      } catch (error) {
        // Its locks are over with the session.
        if (!claim.session.ended.aborted) throw error;
      }
      return this.#claims.get(key) === claim;
    });
  }

  async release(key: string, owner: string): Promise<boolean> {
    const claim = this.#claims.get(key);
    if (claim?.owner !== owner) return false;
    const { acquired } = await this.#limited(() => claim.attempt.catch(() => ({ acquired: false })));
    if (!acquired || this.#claims.get(key) !== claim) return false;
    return this.#inTime(async () => {
      await this.settings.locks.unlock(claim.session.query, claim.session.namesOf(key, owner));
      this.#drop(key, claim);
      return true;
    });
  }

  isHeldBy(key: string, owner: string): Promise<boolean> {
    return this.#inTime(async () => (await this.#sessionOf(key, owner)) !== undefined);
  }

  look(key: string): Promise<LeaseState> {
    return this.#inTime(async () => {
      const { query } = await this.#connected();
      const [row] = await this.settings.locks.row.read(query, this.settings.table, key);
      const owner = row?.['owner'];
      return typeof owner === 'string' && (await this.#sessionOf(key, owner)) !== undefined ? readState(row) : {};
    });
  }

  /** All locks of a process end with its session: that is for a person to decide. */
  evict(key: string, owner: string): Promise<boolean> {
    return this.#inTime(async () => {
      const id = await this.#sessionOf(key, owner);
      if (id === undefined) return false;
      const why = `${this.name} cannot evict, for all locks of a process end with its session`;
      throw new LockConfigurationError(`${why}: ${this.settings.locks.endOf(id)}`, 'strategy', key);
    });
  }

  async close(): Promise<void> {
    this.health.end();
    await this.#session.close();
  }

  /** By the owner's mark, which the session that has the key has too, and gives back first. */
  async #sessionOf(key: string, owner: string): Promise<string | undefined> {
    const session = await this.#connected();
    return this.settings.locks.sessionWith(session.query, session.namesOf(key, owner).mark);
  }

  /** Whether another session would do better. One that is silent is ended if nobody has a lock in it. */
  #hasEnded(session: LockSession, error: unknown): boolean {
    const silent = error instanceof TimeoutError && session.quietMs >= this.requestTimeoutMs;
    if (silent && !session.ended.aborted && !this.#holds(session)) {
      session.cut();
      this.health.reportReplacement('the connection for the locks');
    }
    return session.ended.aborted && !this.#session.isClosed;
  }

  #holds(session: LockSession): boolean {
    return [...this.#claims.values()].some((claim) => claim.session === session && claim.acquired);
  }

  async #ask(session: LockSession, key: string, owner: string, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const attempt = this.#lock(session, key, owner, metadata);
    const overdue = Deadline.after(this.requestTimeoutMs);
    const claim: Claim = { owner, metadata, session, attempt, overdue, acquired: false };
    this.#claims.set(key, claim);
    try {
      const { acquired } = await attempt;
      claim.acquired = acquired;
      if (!acquired) {
        this.#drop(key, claim);
        await this.#unanswered.assertAnswered(key);
      }
      return await attempt;
    } catch (error) {
      this.#drop(key, claim);
      throw error;
    }
  }

  /** The time of the lease starts with this question, so the server has to hear it. */
  async #again(key: string, claim: Claim): Promise<LeaseAttempt> {
    const attempt = await claim.attempt;
    if (attempt.acquired) await claim.session.heartbeat();
    return this.#claims.get(key) === claim ? attempt : { acquired: false, retryAfterMs: 0 };
  }

  async #lock(session: LockSession, key: string, owner: string, metadata: HolderMetadata): Promise<LeaseAttempt> {
    const { query } = session;
    const { locks, table } = this.settings;
    const names = session.namesOf(key, owner);
    try {
      const [answer] = await locks.tryLock(query, table, names, locks.row.columnOf(key));
      // A boolean, or a number, or one as text; `GET_LOCK` answers NULL when it failed.
      if (isTrue(answer?.['is_read_only'])) throw switchOverError();
      const locked = String(Number(answer?.['locked'] ?? Number.NaN));
      if (locked === '0') return { ...readRefusal(answer), acquired: false, retryAfterMs: null };
      if (locked !== '1') throw new DatabaseError('the server could not lock', undefined);
      const fencingToken = await raiseToken(locks.row, query, table, key, metadata, owner);
      return { acquired: true, fencingToken, ttlMs: this.settings.ttlMs, revoked: session.ended };
    } catch (error) {
      // Without a token nobody has the lock. A session that cannot even unlock ends, and the lock with it.
      if (isReadOnlyError(error)) session.cut(error);
      else await locks.unlock(query, names).catch(() => session.cut());
      throw error;
    }
  }

  #drop(key: string, claim: Claim): void {
    if (this.#claims.get(key) === claim) this.#claims.delete(key);
  }

  #connected(): Promise<LockSession> {
    return this.#session.get(this.#claims.size > 0);
  }

  /** Runs before the leases learn of it: their holders ask here. */
  #onEnd(session: LockSession): void {
    let lost = 0;
    for (const [key, claim] of this.#claims) {
      if (claim.session !== session) continue;
      this.#claims.delete(key);
      if (claim.acquired) lost += 1;
      else this.#unanswered.add(key, this.settings.locks.serverSessions.handshakeId(session.client));
    }
    const { reason } = session.ended;
    const why = reason instanceof DatabaseError ? reason.message : 'the connection with the locks was lost';
    if (lost > 0) this.health.down(why);
    else this.health.report('idle');
  }

  /** The session may have ended unnoticed: tries once on a new one. */
  async #onSome<T>(step: () => Promise<T>): Promise<T> {
    const used = this.#session.opened;
    try {
      return await this.#limited(step);
    } catch (error) {
      if (!used || !this.#hasEnded(used, error)) throw error;
      return this.#limited(step);
    }
  }

  #inTime<T>(step: () => Promise<T>): Promise<T> {
    return this.health.reportOutcomeOf(this.#limited(step));
  }

  /** Within `requestTimeoutMs`, whatever the server does. */
  #limited<T>(step: () => Promise<T>): Promise<T> {
    return within(Deadline.after(this.requestTimeoutMs), 'the database gave no answer', step());
  }
}
