import type { ServerSessions } from '../dialect/server-sessions.js';
import type { DatabaseError } from './database-error.js';
import type { Query } from './query.js';
import { TimeoutError } from './timeout.js';

/** Maximum number of keys that are remembered. The oldest one goes first. */
const MAX_KEYS = 1_000;
/** Maximum number of sessions that are remembered for one key. A key that many attempts meet needs no more. */
const MAX_SESSIONS_PER_KEY = 16;

/**
 * Server sessions whose connections were cut before a statement about a key was answered. The server may carry the
 * statement out all the same, and keep the key for that session: a commit that waits for a lost standby does so for as
 * long as the standby is away. Nobody holds the key then, so a refusal is a part of the silence.
 */
export class UnansweredSessions {
  readonly #idsByKey = new Map<string, Set<string>>();

  constructor(
    private readonly sessions: ServerSessions,
    private readonly query: Query,
  ) {}

  /** @param client the driver's connection that was cut; one without an id is not remembered */
  add(key: string, client: unknown): void {
    const id = this.sessions.handshakeId(client);
    if (id === undefined) return;
    const ids = this.#idsByKey.get(key) ?? new Set<string>();
    this.#idsByKey.delete(key);
    this.#idsByKey.set(key, ids.add(id));
    for (const oldest of ids) if (ids.size > MAX_SESSIONS_PER_KEY) ids.delete(oldest);
    for (const oldest of this.#idsByKey.keys()) if (this.#idsByKey.size > MAX_KEYS) this.#idsByKey.delete(oldest);
  }

  /**
   * Called when somebody else has the key. Forgets the sessions of the key once none of them works any more.
   * @throws TimeoutError when one of them still carries its statement out
   */
  async assertAnswered(key: string): Promise<void> {
    const ids = this.#idsByKey.get(key);
    if (!ids) return;
    const error: DatabaseError = new TimeoutError(
      `a session of ours (${[...ids].join(', ')}) still has the key, for the database did not end its statement`,
    );
    if (await this.sessions.isAnyAtWork(this.query, [...ids])) throw error;
    this.#idsByKey.delete(key);
  }
}
