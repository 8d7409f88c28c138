import { systemClock } from '../../../core/index.js';
import type { ServerSessions } from '../dialect/server-sessions.js';
import type { DatabaseError } from './database-error.js';
import type { Query } from './query.js';
import { TimeoutError } from './timeout.js';

const MAX_KEYS = 1_000;
const MAX_SESSIONS_PER_KEY = 16;

interface CutSessions {
  readonly ids: Set<string>;
  /** Time at which the last of these connections was cut. All their statements were sent before. */
  readonly cutAt: number;
}

/**
 * Server sessions whose connections ended before a statement about a key was answered. The server may still carry out
 * that statement and keep the key for the session, as in a commit that waits for a lost standby. A refusal of the key
 * therefore counts as a missing answer of the database.
 */
export class UnansweredSessions {
  readonly #sessionsByKey = new Map<string, CutSessions>();

  constructor(
    private readonly sessions: Pick<ServerSessions, 'isAnySessionWorking'>,
    private readonly query: Query,
  ) {}

  rememberSession(key: string, id: string | undefined): void {
    if (id === undefined) return;
    const { ids } = this.#sessionsByKey.get(key) ?? { ids: new Set<string>() };
    this.#sessionsByKey.delete(key);
    this.#sessionsByKey.set(key, { ids: ids.add(id), cutAt: systemClock.now() });
    for (const oldestId of ids) if (ids.size > MAX_SESSIONS_PER_KEY) ids.delete(oldestId);
    for (const oldestKey of this.#sessionsByKey.keys())
      if (this.#sessionsByKey.size > MAX_KEYS) this.#sessionsByKey.delete(oldestKey);
  }

  /**
   * Forgets the sessions of the key once none of them carries out a statement any more.
   * @throws TimeoutError when one of the sessions still carries out its statement
   */
  async assertNoSessionWorking(key: string): Promise<void> {
    const cutSessions = this.#sessionsByKey.get(key);
    if (!cutSessions) return;
    const ids = [...cutSessions.ids];
    const error: DatabaseError = new TimeoutError(
      `a session of ours (${ids.join(', ')}) still has the key, for the database did not end its statement`,
    );
    if (await this.sessions.isAnySessionWorking(this.query, ids, systemClock.now() - cutSessions.cutAt)) throw error;
    this.#sessionsByKey.delete(key);
  }
}
