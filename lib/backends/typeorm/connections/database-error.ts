import { QueryFailedError } from 'typeorm';
import { errorText, LockError } from '../../../core/index.js';

/** The words of a database or its driver, without the statement: statements carry owner ids, which are secrets. */
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

/** Keeps the message and the code only: the errors of TypeORM and of drivers show values of the statement. */
export function cleanError(error: unknown): DatabaseError | LockError {
  if (error instanceof DatabaseError || error instanceof LockError) return error;
  const cause: unknown = error instanceof QueryFailedError ? error.driverError : error;
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined;
  const advice = code !== undefined && READ_ONLY.has(code) ? `: ${WRITABLE}` : '';
  return new DatabaseError(errorText(cause) + advice, code);
}

export const WRITABLE = 'locks need a database that takes writes, and not a replica or one that is read-only';

/** Answers of databases that take no writes. */
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

/** The error of `promise`, if it rejects. */
export async function failureOf(promise: Promise<unknown>): Promise<DatabaseError | LockError | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return cleanError(error);
  }
}
