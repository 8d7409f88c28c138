import { setMaxListeners } from 'node:events';
import { LockConfigurationError, systemClock } from '../../../core/index.js';
import { type DatabaseError, isConnectionGone, switchOverError } from '../connections/database-error.js';
import { OwnConnection } from '../connections/own-connection.js';
import type { Query } from '../connections/query.js';
import type { SqlDatabase } from '../connections/sql-database.js';
import type { LockNames, SessionLocks } from '../dialect/session-locks.js';

export interface SessionSettings {
  readonly database: SqlDatabase;
  readonly locks: SessionLocks;
  readonly table: string;
  readonly check: (query: Query) => Promise<void>;
  /** How long the server keeps the locks of a session that it hears nothing from. */
  readonly ttlMs: number;
}

/** One connection whose end is the end of every lock taken on it. Used until it ends, and never again. */
export class LockSession {
  readonly #connection: OwnConnection;
  readonly #end = new AbortController();
  /** Aborts as soon as we know that the server has freed, or will free, all that was locked here. */
  readonly ended: AbortSignal = this.#end.signal;
  #scope = '';
  #id: string | undefined;
  #lastStatement: Promise<unknown> = Promise.resolve();
  #nextHeartbeat: Promise<void> | undefined;

  constructor(private readonly settings: SessionSettings) {
    const { database, ttlMs } = settings;
    // Every lease listens to it: many are no leak.
    setMaxListeners(0, this.ended);
    const onOpen = (query: Query): Promise<void> => this.#prepare(query);
    // A statement without an answer for a whole TTL is the end: by then nobody trusts a lock of this session any more.
    const timeouts = {
      connectTimeoutMs: ttlMs,
      connectTimeoutOption: 'sessionTtlMs' as const,
      requestTimeoutMs: ttlMs,
    };
    const connection = { database, ...timeouts, onOpen };
    this.#connection = new OwnConnection(connection, () => this.#end.abort());
  }

  /** Within the TTL, or nothing stays open. */
  open(): Promise<void> {
    return this.#connection.open();
  }

  /** The driver's own connection. */
  get client(): unknown {
    return this.#connection.client;
  }

  /** For how long the server has said nothing. */
  get quietMs(): number {
    return this.#connection.idleMs;
  }

  namesOf(key: string, owner: string): LockNames {
    const { locks } = this.settings;
    return { lock: locks.nameOf(this.#scope, key), mark: locks.nameOf(`${this.#scope}\0${owner}`, key) };
  }

  /** One statement after the other: drivers no longer queue them. */
  readonly query: Query = (sql, parameters) => {
    const answer = this.#lastStatement.then(() => this.#ask(sql, parameters));
    this.#lastStatement = answer.catch(() => undefined);
    return answer;
  };

  /** Proves that this session took the locks, and that its server is still the one that takes writes. All calls of one turn share a statement. */
  heartbeat(): Promise<void> {
    this.#nextHeartbeat ??= Promise.resolve().then(() => {
      this.#nextHeartbeat = undefined;
      return this.#assertSameSession();
    });
    return this.#nextHeartbeat;
  }

  async close(): Promise<void> {
    await this.#connection.close();
    this.#end.abort();
  }

  /** @param why what `health` tells, as the `reason` of `ended` */
  cut(why?: DatabaseError): void {
    this.#connection.destroy();
    this.#end.abort(why);
  }

  async #ask(sql: string, parameters: readonly unknown[]): Promise<readonly Record<string, unknown>[]> {
    const sentAt = systemClock.now();
    try {
      return await this.#connection.run(sql, parameters);
    } catch (error) {
      if (systemClock.now() - sentAt >= this.settings.ttlMs || isConnectionGone(error)) this.cut();
      throw error;
    }
  }

  async #assertSameSession(): Promise<void> {
    const { id, isReadOnly } = await this.settings.locks.session(this.query);
    if (id !== this.#id) this.cut();
    if (!isReadOnly) return;
    // The other processes may have turned to another server already.
    const error = switchOverError();
    this.cut(error);
    throw error;
  }

  async #prepare(query: Query): Promise<void> {
    const { locks, table, check, ttlMs } = this.settings;
    this.#connection.assertWatched('session');
    this.#id = (await locks.session(query)).id;
    const promised = locks.serverSessions.handshakeId(this.client);
    if (promised === undefined) throw unknownSession();
    if (promised !== this.#id) throw behindPooler();
    await locks.limitSilence(query, ttlMs);
    await check(query);
    this.#scope = await locks.scopeOf(query, table);
  }
}

/** Nothing shows then whether a pooler is there. */
function unknownSession(): LockConfigurationError {
  return new LockConfigurationError(
    "strategy 'session' needs a driver that tells the session's id, as pg and mysql2 do, and this one tells none: " +
      "use one of these, or strategy 'lease'",
    'strategy',
  );
}

/** A pooler has an id of its own. In transaction mode it would unlock in other sessions than it locked in. */
function behindPooler(): LockConfigurationError {
  return new LockConfigurationError(
    "strategy 'session' needs a connection to the database itself, not to a pooler such as PgBouncer, which may run each " +
      "statement in another session: give it a direct address, or use strategy 'lease'",
    'strategy',
  );
}
