import { isTrue } from '../connections/query.js';
import { type FenceStatements, parseFenceToken } from '../dialect/fence-statements.js';
import { toStoredText } from '../tables/stored-key.js';

/** Each parameter is sent as text and cast on the server. Otherwise some clients convert it to the column's type. */
export const postgresFence: FenceStatements = {
  async raise(query, table, resource, token) {
    const rows = await query(
      `insert into ${table} as fence (resource, token) values (cast($1 as text), cast(cast($2 as text) as bigint))
       on conflict (resource) do update set token = excluded.token where excluded.token >= fence.token returning 1 as raised`,
      [toStoredText(resource), String(token)],
    );
    return isTrue(rows[0]?.['raised']);
  },

  async readNewestToken(query, table, resource, isShared = false) {
    const [row] = await query(
      `select token::text as token from ${table} where resource = cast($1 as text)${isShared ? ' for share' : ''}`,
      [toStoredText(resource)],
    );
    return parseFenceToken(row);
  },
};
