import type { Query } from '../connections/query.js';

/** The sessions that a server keeps for its connections. */
export interface ServerSessions {
  /** The session's id as the server told it in the handshake; `undefined` where the driver tells none. */
  handshakeId(client: unknown): string | undefined;
  /**
   * Whether the server has been carrying out a statement of one of these sessions for `forMs` or longer. Where it
   * counts whole seconds, one of them may be missing. A server that was restarted, or has taken over, gives the same
   * ids to other sessions, also to the one that asks.
   */
  isAnyAtWork(query: Query, sessionIds: readonly string[], forMs: number): Promise<boolean>;
}
