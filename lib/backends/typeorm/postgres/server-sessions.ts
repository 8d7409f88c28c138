import type { ServerSessions } from '../dialect/server-sessions.js';
import { handshakePid } from './driver.js';

export const postgresServerSessions: ServerSessions = {
  handshakeId: (client) => handshakePid(client) ?? undefined,
  async isAnyAtWork(query, sessionIds) {
    const rows = await query(`select 1 from pg_stat_activity where pid = any($1::int[]) and state = 'active'`, [
      sessionIds,
    ]);
    return rows.length > 0;
  },
};
