import { setMaxListeners } from 'node:events';
import { type Deadline, LockConfigurationError, pause, systemClock } from '../../../core/index.js';
import { type DatabaseError, isConnectionGone, createReadOnlyServerError } from '../connections/database-error.js';
import { OwnConnection } from '../connections/own-connection.js';
import type { Query } from '../connections/query.js';
import type { SqlDatabase } from '../connections/sql-database.js';
import { TimeoutError } from '../connections/timeout.js';
import type { LockNames, SessionLocks } from '../dialect/session-locks.js';

const SESSION_END_POLL_MS = 5;

export interface SessionSettings {
  readonly database: SqlDatabase;
  readonly locks: SessionLocks;
  readonly table: string;
  readonly checkTable: (query: Query) => Promise<void>;
  /** Milliseconds for which the server keeps the locks of a session that sends nothing. */
  readonly ttlMs: number;
}

/** Session of the server that has locks of this process, on a connection of its own. */
export class LockSession {
  readonly #connection: OwnConnection;
  readonly #endController = new AbortController();
  /** Signal that aborts when the session ends: the server has freed, or will free, all locks of the session. */
  readonly endSignal: AbortSignal = this.#endController.signal;
  /** Schema and name of the table, which are hashed into the names of the locks. */
  #namespace = '';
  #id: string | undefined;
  #lastStatement: Promise<unknown> = Promise.resolve();
  #nextHeartbeat: Promise<void> | undefined;

  constructor(private readonly settings: SessionSettings) {
    const { database, ttlMs } = settings;
    // Every lease listens to the signal. Without this call, Node warns of a leak when there are many.
    setMaxListeners(0, this.endSignal);
    const onOpen = (query: Query): Promise<void> => this.#prepare(query);
    // A statement without an answer for a whole TTL ends the session: no lock of it is trusted by then.
    const timeouts = {
      connectTimeoutMs: ttlMs,
      connectTimeoutOption: 'sessionTtlMs' as const,
      addressesTimeoutMs: Math.min(database.connectTimeoutMs, ttlMs),
      requestTimeoutMs: ttlMs,
    };
    const connectionSettings = { database, ...timeouts, onOpen };
    this.#connection = new OwnConnection(connectionSettings, () => this.#endController.abort());
  }

  open(): Promise<void> {
    return this.#connection.open();
  }

  get client(): unknown {
    return this.#connection.client;
  }

  get quietMs(): number {
    return this.#connection.idleMs;
  }

  getLockNames(key: string, owner: string): LockNames {
    const { locks } = this.settings;
    return {
      lock: locks.toLockName(this.#namespace, key),
      ownerLock: locks.toLockName(`${this.#namespace}\0${owner}`, key),
    };
  }

  findSessionHolding(key: string, owner: string): Promise<string | undefined> {
    return this.settings.locks.findSessionHolding(this.query, this.getLockNames(key, owner));
  }

  /**
   * Ends a lost session that has the key for an owner of this process, and waits for the session's end. Resolves to
   * false if there is no such session.
   * @throws TimeoutError when the session has not ended by the deadline
   */
  async endLostSessionHolding(key: string, owner: string, deadline: Deadline): Promise<boolean> {
    const names = this.getLockNames(key, owner);
    let hasFoundSession = false;
    while (await this.settings.locks.endOtherSessionHolding(this.query, names)) {
      if (deadline.passed) throw new TimeoutError('the database did not end a lost session that has the key');
      hasFoundSession = true;
      await pause(systemClock, SESSION_END_POLL_MS);
    }
    return hasFoundSession;
  }

  /** Sends the statement after the answer to the previous one. Newer drivers do not queue statements themselves. */
  readonly query: Query = (sql, parameters) => {
    const answer = this.#lastStatement.then(() => this.#send(sql, parameters));
    this.#lastStatement = answer.catch(() => undefined);
    return answer;
  };

  /** Checks that the server still has this session and takes writes. Simultaneous calls share a statement. */
  heartbeat(): Promise<void> {
    this.#nextHeartbeat ??= Promise.resolve().then(() => {
      this.#nextHeartbeat = undefined;
      return this.#assertSameSession();
    });
    return this.#nextHeartbeat;
  }

  async close(): Promise<void> {
    await this.#connection.close();
    this.#endController.abort();
  }

  /** @param reason becomes the reason of `endSignal`, which `health` reports */
  destroy(reason?: DatabaseError): void {
    this.#connection.destroy();
    this.#endController.abort(reason);
  }

  async #send(sql: string, parameters: readonly unknown[]): Promise<readonly Record<string, unknown>[]> {
    const sentAt = systemClock.now();
    try {
      return await this.#connection.query(sql, parameters);
    } catch (error) {
      if (systemClock.now() - sentAt >= this.settings.ttlMs || isConnectionGone(error)) this.destroy();
      throw error;
    }
  }

  async #assertSameSession(): Promise<void> {
    const { id, isReadOnly } = await this.settings.locks.readSession(this.query);
    if (id !== this.#id) this.destroy();
    if (!isReadOnly) return;
    // Other processes may already use the new primary server.
    const error = createReadOnlyServerError();
    this.destroy(error);
    throw error;
  }

  async #prepare(query: Query): Promise<void> {
    const { locks, table, checkTable, ttlMs } = this.settings;
    this.#connection.assertSocketIsWatched('session');
    this.#id = (await locks.readSession(query)).id;
    const handshakeId = locks.serverSessions.getSessionId(this.client);
    if (handshakeId === undefined) throw createUnknownSessionError();
    if (handshakeId !== this.#id) throw createPoolerError();
    await locks.setIdleTimeout(query, ttlMs);
    await checkTable(query);
    this.#namespace = await locks.readNamespace(query, table);
    await this.#assertLocksAreKept(query);
  }

  /** Takes a lock that nobody else wants, and looks for it among those that the server keeps. */
  async #assertLocksAreKept(query: Query): Promise<void> {
    const { locks, table } = this.settings;
    const names = this.getLockNames(`\0probe of session ${this.#id}`, '');
    await locks.tryLock(query, table, names, '');
    if ((await locks.findSessionHolding(query, names)) !== this.#id) throw createForgottenLockError();
    await locks.unlock(query, names);
  }
}

/** Returns the error for a driver without the session's id, which is needed to notice a pooler. */
function createUnknownSessionError(): LockConfigurationError {
  return new LockConfigurationError(
    "strategy 'session' needs a driver that tells the session's id, as pg and mysql2 do, and this one tells none: " +
      "use one of these, or strategy 'lease'",
    'strategy',
  );
}

function createForgottenLockError(): LockConfigurationError {
  return new LockConfigurationError(
    "strategy 'session' needs a database that keeps the locks of its sessions, and this one does nothing when it is " +
      "asked for one, as some databases that speak PostgreSQL's protocol: use strategy 'lease'",
    'strategy',
  );
}

function createPoolerError(): LockConfigurationError {
  return new LockConfigurationError(
    "strategy 'session' needs a connection to the database itself, and this one goes through a pooler such as PgBouncer, " +
      "which may run each statement in another session, or a proxy such as Neon's, which hides the session's id: give it " +
      "a direct address where there is one, or use strategy 'lease'",
    'strategy',
  );
}
