import { Deadline } from '../../../core/index.js';
import { createReadOnlyServerError } from './database-error.js';
import { isTrue, type Query } from './query.js';
import type { Sockets } from './sockets.js';
import { settleByDeadline } from './timeout.js';

interface OpenedConnection {
  readonly query: Query;
  readonly sockets: Sockets;
  /** Ends the connection as the protocol demands. */
  readonly end: () => Promise<unknown>;
}

/**
 * Asserts that the server at one of several addresses takes writes. Otherwise ends the connection, so that another
 * address can be tried. A pooler accepts connections while its server is away, and then answers no statement.
 * @throws DatabaseError when the server is read-only or gives no answer in time
 */
export async function assertTakesWrites(
  { query, sockets, end }: OpenedConnection,
  isReadOnlySql: string,
  timeoutMs: number,
): Promise<void> {
  const answer = query(`select ${isReadOnlySql} as is_read_only`, []);
  const [row] = await settleByDeadline(Deadline.after(timeoutMs), 'the database gave no answer', answer).catch(
    (error: unknown) => {
      // The driver would wait for the answer before it ends the connection.
      sockets.destroyNewest();
      throw error;
    },
  );
  if (!isTrue(row?.['is_read_only'])) return;
  await end();
  throw createReadOnlyServerError();
}
