import type { ServerSessions } from '../dialect/server-sessions.js';
import { getHandshakeId } from './driver.js';

export const mysqlServerSessions: ServerSessions = {
  getSessionId: getHandshakeId,
  async isAnySessionWorking(query, sessionIds, minWorkMs) {
    const ids = sessionIds.map(() => '?').join(', ');
    const rows = await query(
      `select 1 from information_schema.processlist
       where id in (${ids}) and id <> connection_id() and command <> 'Sleep' and time >= ?`,
      // The column `time` counts whole seconds, and may be one second short.
      [...sessionIds, Math.floor(minWorkMs / 1000) - 1],
    );
    return rows.length > 0;
  },
};
