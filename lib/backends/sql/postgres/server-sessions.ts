import type { ServerSessions } from '../dialect/server-sessions.js';
import { handshakePid } from './driver.js';

export const postgresServerSessions: ServerSessions = {
  handshakeId: (client) => handshakePid(client) ?? undefined,
  async isAnyAtWork(query, sessionIds, forMs) {
    const rows = await query(
      `select 1 from pg_stat_activity where pid = any($1::int[]) and pid <> pg_backend_pid() and state = 'active'
         and query_start <= clock_timestamp() - $2::int * interval '1 millisecond'`,
      [sessionIds, Math.floor(forMs)],
    );
    return rows.length > 0;
  },
};
