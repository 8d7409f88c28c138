import { createReadOnlyServerError } from './database-error.js';
import { isTrue, type Query } from './query.js';

/**
 * Ends a new connection to one of several servers, and throws, unless the server says that it takes writes.
 * @param answer rows with the column `is_read_only`
 * @throws DatabaseError when the server is read-only; the driver's error when it gave no answer
 */
export async function assertTakesWrites(answer: ReturnType<Query>, end: () => Promise<unknown>): Promise<void> {
  try {
    const [row] = await answer;
    if (isTrue(row?.['is_read_only'])) throw createReadOnlyServerError();
  } catch (error) {
    end().catch(() => undefined);
    throw error;
  }
}
