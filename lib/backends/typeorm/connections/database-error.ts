import { QueryFailedError } from 'typeorm';
import { errorText, LockError } from '../../../core/index.js';

/** What a database or its driver said, without what was asked of it: statements carry owner ids, which are secrets. */
export class DatabaseError extends Error {
  constructor(
    message: string,
    /** As the driver has it: an SQLSTATE, `ER_LOCK_DEADLOCK`, `SQLITE_BUSY`, `ECONNREFUSED`. */
    readonly code: string | undefined,
  ) {
    super(message);
    this.name = new.target.name;
  }
}

/**
 * TypeORM's error shows the statement's values, mysql2's the statement with the values in it, that of pg the row concerned.
 * Nothing of them is kept but the message and the code.
 */
export function cleanError(error: unknown): DatabaseError | LockError {
  if (error instanceof DatabaseError || error instanceof LockError) return error;
  const cause: unknown = error instanceof QueryFailedError ? error.driverError : error;
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined;
  const advice = code !== undefined && READ_ONLY.has(code) ? `: ${WRITABLE}` : '';
  return new DatabaseError(errorText(cause) + advice, code);
}

export const WRITABLE = 'locks need a database that takes writes, and not a replica or one that is read-only';

/** What databases answer to a statement that would write. */
const READ_ONLY: ReadonlySet<string> = new Set([
  '25006', // PostgreSQL: read_only_sql_transaction
  'ER_OPTION_PREVENTS_STATEMENT',
  'ER_READ_ONLY_MODE',
  'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION',
  'SQLITE_READONLY',
  'SQLITE_READONLY_DBMOVED',
  'SQLITE_READONLY_DIRECTORY',
  'UNKNOWN_SQLITE_ERROR_1544', // the same, as libsql has it
]);

/** What `promise` failed with, if it did. */
export async function failureOf(promise: Promise<unknown>): Promise<DatabaseError | LockError | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return cleanError(error);
  }
}
