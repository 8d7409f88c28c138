import type { Query } from '../connections/query.js';

export interface ServerSessions {
  /** Returns `undefined` where the driver does not keep the id that the server sent in the handshake. */
  getSessionId(client: unknown): string | undefined;
  /**
   * Resolves to whether the server has been carrying out a statement of one of these sessions for `minWorkMs` or
   * longer. After a restart or a failover, other sessions may have the same ids, also the session of `query`, which is
   * not counted.
   */
  isAnySessionWorking(query: Query, sessionIds: readonly string[], minWorkMs: number): Promise<boolean>;
}
