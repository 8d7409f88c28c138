import { systemClock } from '../../../core/index.js';
import type { ServerSessions } from '../dialect/server-sessions.js';
import type { DatabaseError } from './database-error.js';
import type { Query } from './query.js';
import { TimeoutError } from './timeout.js';

/** Maximum number of keys that are remembered. The oldest one goes first. */
const MAX_KEYS = 1_000;
/** Maximum number of sessions that are remembered for one key. A key that many attempts meet needs no more. */
const MAX_SESSIONS_PER_KEY = 16;

interface CutSessions {
  readonly ids: Set<string>;
  /** When the last one of them was cut. Its statement was sent before that, and so were those of the others. */
  readonly cutAt: number;
}

/**
 * Server sessions whose connections were cut before a statement about a key was answered. The server may carry the
 * statement out all the same, and keep the key for that session. A commit that waits for a lost standby does so for as
 * long as the standby is away. Nobody holds the key then, so a refusal is a part of the silence.
 */
export class UnansweredSessions {
  readonly #byKey = new Map<string, CutSessions>();

  constructor(
    private readonly sessions: Pick<ServerSessions, 'isAnyAtWork'>,
    private readonly query: Query,
  ) {}

  /** Remembers a session whose connection was cut, if it has told its id. */
  add(key: string, id: string | undefined): void {
    if (id === undefined) return;
    const { ids } = this.#byKey.get(key) ?? { ids: new Set<string>() };
    this.#byKey.delete(key);
    this.#byKey.set(key, { ids: ids.add(id), cutAt: systemClock.now() });
    for (const oldest of ids) if (ids.size > MAX_SESSIONS_PER_KEY) ids.delete(oldest);
    for (const oldest of this.#byKey.keys()) if (this.#byKey.size > MAX_KEYS) this.#byKey.delete(oldest);
  }

  /**
   * Called when somebody else has the key. Forgets the sessions of the key once none of them works any more.
   * @throws TimeoutError when one of them still carries its statement out
   */
  async assertAnswered(key: string): Promise<void> {
    const cut = this.#byKey.get(key);
    if (!cut) return;
    const ids = [...cut.ids];
    const error: DatabaseError = new TimeoutError(
      `a session of ours (${ids.join(', ')}) still has the key, for the database did not end its statement`,
    );
    if (await this.sessions.isAnyAtWork(this.query, ids, systemClock.now() - cut.cutAt)) throw error;
    this.#byKey.delete(key);
  }
}
