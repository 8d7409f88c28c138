import { DatabaseError } from '../connections/database-error.js';
import { LockSession, type SessionSettings } from './lock-session.js';

/** The session for all new locks. Opens another session when the last one has ended. */
export class CurrentSession {
  #session: LockSession | undefined;
  /** Session that was created last, which may still be opening. `close` destroys it in any case. */
  #newestSession: LockSession | undefined;
  #opening: Promise<LockSession> | undefined;
  #isClosed = false;

  /** @param onEnd called when a session ends, before its leases learn of it, with whether another was to replace it */
  constructor(
    private readonly settings: SessionSettings,
    private readonly onEnd: (session: LockSession, wasReplaced: boolean) => void,
  ) {}

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get openSession(): LockSession | undefined {
    return this.#session;
  }

  /**
   * Returns the open session, or opens one. A session without locks that was quiet for long is replaced, because the
   * server may have ended it.
   */
  async get(hasLocks: boolean): Promise<LockSession> {
    const session = this.#session;
    const isStale = !hasLocks && (session?.quietMs ?? 0) > this.settings.ttlMs / 2;
    if (session && !isStale) return session;
    this.#session = undefined;
    void session?.close();
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#newestSession?.destroy();
    await this.#session?.close();
  }

  async #open(): Promise<LockSession> {
    if (this.#isClosed) throw new DatabaseError('the lock session is closed', undefined);
    const session = new LockSession(this.settings);
    this.#newestSession = session;
    await session.open();
    session.endSignal.addEventListener('abort', () => this.#handleEnd(session), { once: true });
    if (session.endSignal.aborted) throw new DatabaseError('the connection was lost', undefined);
    this.#session = session;
    return session;
  }

  #handleEnd(session: LockSession): void {
    const wasReplaced = this.#session !== session;
    if (!wasReplaced) this.#session = undefined;
    this.onEnd(session, wasReplaced);
  }
}
