import type { ServerSessions } from '../dialect/server-sessions.js';
import { handshakeId } from './driver.js';

export const mysqlServerSessions: ServerSessions = {
  handshakeId,
  async isAnyAtWork(query, sessionIds) {
    const ids = sessionIds.map(() => '?').join(', ');
    const rows = await query(
      `select 1 from information_schema.processlist where id in (${ids}) and command <> 'Sleep'`,
      sessionIds,
    );
    return rows.length > 0;
  },
};
