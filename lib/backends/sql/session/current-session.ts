import { DatabaseError } from '../connections/database-error.js';
import { LockSession, type SessionSettings } from './lock-session.js';

/** The session for all new locks. Opens another session when the last one has ended. */
export class CurrentSession {
  #openSession: LockSession | undefined;
  /** Session that was created last, which may still be opening. `close` destroys it in any case. */
  #newestSession: LockSession | undefined;
  #opening: Promise<LockSession> | undefined;
  #isClosed = false;

  /**
   * @param onEnd called when a session ends, before its leases learn of the end. `wasReplaced`: the session was given
   *   up as stale, for another one
   */
  constructor(
    private readonly settings: SessionSettings,
    private readonly onEnd: (session: LockSession, wasReplaced: boolean) => void,
  ) {}

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get openSession(): LockSession | undefined {
    return this.#openSession;
  }

  /**
   * Returns the open session, or opens one. A session without locks that was quiet for long is replaced, because the
   * server may have ended it.
   */
  async get(hasLocks: boolean): Promise<LockSession> {
    const session = this.#openSession;
    const isStale = !hasLocks && (session?.quietMs ?? 0) > this.settings.ttlMs / 2;
    if (session && !isStale) return session;
    this.#openSession = undefined;
    void session?.close();
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#newestSession?.destroy();
    await this.#openSession?.close();
  }

  async #open(): Promise<LockSession> {
    if (this.#isClosed) throw new DatabaseError('the lock session is closed', undefined);
    const session = new LockSession(this.settings);
    this.#newestSession = session;
    await session.open();
    session.endSignal.addEventListener('abort', () => this.#handleEnd(session), { once: true });
    if (session.endSignal.aborted) throw new DatabaseError('the connection was lost', undefined);
    this.#openSession = session;
    return session;
  }

  #handleEnd(session: LockSession): void {
    const wasReplaced = this.#openSession !== session;
    if (!wasReplaced) this.#openSession = undefined;
    this.onEnd(session, wasReplaced);
  }
}
