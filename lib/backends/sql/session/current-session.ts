import { DatabaseError } from '../connections/database-error.js';
import { LockSession, type SessionSettings } from './lock-session.js';

/** The session that has the locks of this process. There is one at a time, opened when it is needed. */
export class CurrentSession {
  #session: LockSession | undefined;
  /** The session that is being opened, or was last. */
  #candidate: LockSession | undefined;
  #opening: Promise<LockSession> | undefined;
  #isClosed = false;

  /** @param onEnd called when a session ends, before its leases learn of it */
  constructor(
    private readonly settings: SessionSettings,
    private readonly onEnd: (session: LockSession) => void,
  ) {}

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The open session, if there is one. */
  get openSession(): LockSession | undefined {
    return this.#session;
  }

  /**
   * Returns the open session, or a new one. A session that was quiet for long may have been ended for that, and a new one
   * costs less than an error.
   * @param hasLocks whether the open session must be kept, however quiet it was
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
    this.#candidate?.destroy();
    await this.#session?.close();
  }

  async #open(): Promise<LockSession> {
    if (this.#isClosed) throw new DatabaseError('the lock session is closed', undefined);
    const session = new LockSession(this.settings);
    this.#candidate = session;
    await session.open();
    session.ended.addEventListener('abort', () => this.#handleEnd(session), { once: true });
    if (session.ended.aborted) throw new DatabaseError('the connection was lost', undefined);
    this.#session = session;
    return session;
  }

  #handleEnd(session: LockSession): void {
    if (this.#session === session) this.#session = undefined;
    this.onEnd(session);
  }
}
