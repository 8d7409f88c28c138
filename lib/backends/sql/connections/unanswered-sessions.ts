import { systemClock } from '../../../core/index.js';
import type { ServerSessions } from '../dialect/server-sessions.js';
import type { DatabaseError } from './database-error.js';
import type { Query } from './query.js';
import { TimeoutError } from './timeout.js';

const MAX_REMEMBERED_KEYS = 1_000;
const MAX_SESSIONS_PER_KEY = 16;

interface LostSessions {
  readonly ids: Set<string>;
  /** Time at which the last of these sessions lost its connection. All their statements were sent before. */
  readonly lostAt: number;
}

/**
 * Server sessions that lost their connection before a statement about a key was answered. The server may still carry
 * out that statement, and keep the key for the session, as in a commit that waits for a lost standby. A refusal of the
 * key then counts as a missing answer of the database.
 */
export class UnansweredSessions {
  readonly #sessionsByKey = new Map<string, LostSessions>();

  constructor(
    private readonly serverSessions: Pick<ServerSessions, 'isAnySessionWorking'>,
    private readonly query: Query,
  ) {}

  rememberSession(key: string, id: string | undefined): void {
    if (id === undefined) return;
    const { ids } = this.#sessionsByKey.get(key) ?? { ids: new Set<string>() };
    this.#sessionsByKey.delete(key);
    this.#sessionsByKey.set(key, { ids: ids.add(id), lostAt: systemClock.now() });
    for (const oldestId of ids) if (ids.size > MAX_SESSIONS_PER_KEY) ids.delete(oldestId);
    for (const oldestKey of this.#sessionsByKey.keys())
      if (this.#sessionsByKey.size > MAX_REMEMBERED_KEYS) this.#sessionsByKey.delete(oldestKey);
  }

  /**
   * Forgets the sessions of the key once none of them carries out a statement any more.
   * @throws TimeoutError when one of the sessions still carries out its statement
   */
  async assertNoSessionWorking(key: string): Promise<void> {
    const lostSessions = this.#sessionsByKey.get(key);
    if (!lostSessions) return;
    const ids = [...lostSessions.ids];
    const error: DatabaseError = new TimeoutError(
      `a session of ours (${ids.join(', ')}) still has the key, for the database did not end its statement`,
    );
    if (await this.serverSessions.isAnySessionWorking(this.query, ids, systemClock.now() - lostSessions.lostAt))
      throw error;
    this.#sessionsByKey.delete(key);
  }
}
