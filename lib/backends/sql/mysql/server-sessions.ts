import type { ServerSessions } from '../dialect/server-sessions.js';
import { handshakeId } from './driver.js';

export const mysqlServerSessions: ServerSessions = {
  handshakeId,
  async isAnyAtWork(query, sessionIds, forMs) {
    const ids = sessionIds.map(() => '?').join(', ');
    const rows = await query(
      `select 1 from information_schema.processlist
       where id in (${ids}) and id <> connection_id() and command <> 'Sleep' and time >= ?`,
      [...sessionIds, Math.floor(forMs / 1000) - 1],
    );
    return rows.length > 0;
  },
};
