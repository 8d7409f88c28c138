import type { Query } from '../connections/query.js';

/** The sessions that a server keeps for its connections. */
export interface ServerSessions {
  /** The session's id as the server told it in the handshake; `undefined` where the driver tells none. */
  handshakeId(client: unknown): string | undefined;
  /** Whether the server still carries out a statement of one of these sessions. */
  isAnyAtWork(query: Query, sessionIds: readonly string[]): Promise<boolean>;
}
