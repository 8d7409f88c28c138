import type { Query } from '../connections/query.js';

export interface ServerSessions {
  /** Returns `undefined` where the driver does not keep the id that the server told in the handshake. */
  getSessionId(client: unknown): string | undefined;
  /**
   * Resolves to whether the server has been carrying out a statement of one of these sessions for `minWorkMs` or
   * longer. A server that counts whole seconds may report one second less. After a restart or a failover, other
   * sessions may have the same ids, also the one that asks.
   */
  isAnySessionWorking(query: Query, sessionIds: readonly string[], minWorkMs: number): Promise<boolean>;
}
