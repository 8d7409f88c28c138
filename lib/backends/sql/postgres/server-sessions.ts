import type { ServerSessions } from '../dialect/server-sessions.js';
import { getHandshakePid } from './driver.js';

export const postgresServerSessions: ServerSessions = {
  getSessionId: (client) => getHandshakePid(client) ?? undefined,
  async isAnySessionWorking(query, sessionIds, minWorkMs) {
    const rows = await query(
      `select 1 from pg_stat_activity where pid = any($1::int[]) and pid <> pg_backend_pid() and state = 'active'
         and query_start <= clock_timestamp() - $2::float8 * interval '1 millisecond'`,
      [sessionIds, Math.floor(minWorkMs)],
    );
    return rows.length > 0;
  },
};
