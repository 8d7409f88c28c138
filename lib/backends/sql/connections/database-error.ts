import {
  errorText,
  type FailureKind,
  isLockError,
  LockConfigurationError,
  type LockError,
} from '../../../core/index.js';

/** Error of a database or its driver, without the statement: statements carry owner ids, which are secrets. */
export class DatabaseError extends Error {
  /** Whether a reachable server that takes writes has replied with this error. */
  isServerAnswer = false;

  constructor(
    message: string,
    /** Code that the driver reports: an SQLSTATE, `ER_LOCK_DEADLOCK`, `SQLITE_BUSY`, `ECONNREFUSED`. */
    readonly code: string | undefined,
    readonly sqlState?: string,
  ) {
    super(message);
    this.name = new.target.name;
  }

  get failureKind(): FailureKind {
    if (isRefusedValueError(this)) return 'value';
    if (isReadOnlyError(this)) return 'elsewhere';
    return isConnectionGone(this) ? 'silent' : 'refuses';
  }
}

/** Keeps only the message and the codes: errors of TypeORM and of drivers contain the statement's values. */
export function toErrorWithoutStatement(error: unknown): DatabaseError | LockError {
  if (error instanceof DatabaseError || isLockError(error)) return error;
  const cause: unknown = error instanceof Error && 'driverError' in error ? error.driverError : error;
  // libsql also throws objects that are no errors.
  const code = getTextProperty(cause, 'code');
  const advice = getAdvice(code ?? '');
  return new DatabaseError(errorText(cause) + advice, code, getSqlState(cause) ?? code);
}

function getAdvice(code: string): string {
  if (READ_ONLY_CODE_PATTERN.test(code)) return `: ${WRITABLE_ADVICE}`;
  return /^SQLITE_(BUSY|LOCKED)$/u.test(code) ? `: ${ONE_WRITER_ADVICE}` : '';
}

const ONE_WRITER_ADVICE =
  'another connection is in a transaction that writes to this SQLite file, such as one of the application; take the ' +
  'lock before it begins, or give the locks a data source with a file of their own';

/** Reads the property in which mysql2 reports the SQLSTATE. `pg` reports it as `code`. */
function getSqlState(cause: unknown): string | undefined {
  return getTextProperty(cause, 'sqlState');
}

function getTextProperty(cause: unknown, property: string): string | undefined {
  const text: unknown = typeof cause === 'object' && cause !== null ? Reflect.get(cause, property) : undefined;
  return typeof text === 'string' ? text : undefined;
}

export function hasErrorCode(error: unknown, codes: RegExp | undefined): boolean {
  return error instanceof DatabaseError && codes?.test(error.code ?? '') === true;
}

export const WRITABLE_ADVICE = 'locks need a database that takes writes, and not a replica or one that is read-only';

/**
 * Codes for a database that takes no writes. libsql reports `UNKNOWN_SQLITE_ERROR_1544` for
 * `SQLITE_READONLY_DIRECTORY`. `ER_UNKNOWN_COM_ERROR` is what a node of Galera outside of its cluster replies.
 */
const READ_ONLY_CODE_PATTERN =
  /^(25006|ER_(OPTION_PREVENTS_STATEMENT|OPEN_AS_READONLY|(INNODB_)?READ_ONLY(_MODE)?|CANT_EXECUTE_IN_READ_ONLY_TRANSACTION|UNKNOWN_COM_ERROR)|SQLITE_READONLY(_DBMOVED|_DIRECTORY)?|UNKNOWN_SQLITE_ERROR_1544)$/u;

/** Returns whether a healthy server refused the statement because of its values, or because the role lacks a right. */
export function isRefusedValueError(error: unknown): error is DatabaseError {
  return (
    error instanceof DatabaseError &&
    (REFUSED_VALUE_SQLSTATE_PATTERN.test(error.sqlState ?? '') || hasErrorCode(error, REFUSED_VALUE_CODE_PATTERN))
  );
}

/** Returns an error after which the core does not retry: the statement would fail again. Other keys may still work. */
export function createRefusedValueError(error: DatabaseError): LockConfigurationError {
  const isRightMissing =
    MISSING_RIGHT_CODE_PATTERN.test(error.code ?? '') && !error.message.includes('row-level security');
  if (isRightMissing) return new LockConfigurationError(`the database refuses locks: ${error.message}`, 'tableName');
  return new LockConfigurationError(`the database refuses this key: ${error.message}`, 'key');
}

/** PostgreSQL also reports 42501 for a row-level security policy that forbids the key, and says so in the message. */
const MISSING_RIGHT_CODE_PATTERN = /^(42501|ER_(TABLE|COLUMN)ACCESS_DENIED_ERROR)$/u;

/** SQLSTATEs of data exceptions, constraints, insufficient privilege, and errors that triggers raise. */
const REFUSED_VALUE_SQLSTATE_PATTERN = /^(2[23][0-9A-Z]{3}|42501|45000|P0001)$/u;

/** Codes of errors of MySQL whose SQLSTATE is unspecific, and of errors of SQLite, which have no SQLSTATE. */
const REFUSED_VALUE_CODE_PATTERN =
  /^(ER_((TABLE|COLUMN)ACCESS_DENIED_ERROR|TRUNCATED_WRONG_VALUE_FOR_FIELD|CHECK_CONSTRAINT_VIOLATED)|SQLITE_(CONSTRAINT|MISMATCH|TOOBIG).*)$/u;

export function createReadOnlyServerError(): DatabaseError {
  return new DatabaseError(`the server no longer takes writes: ${WRITABLE_ADVICE}`, '25006');
}

export function isReadOnlyError(error: unknown): error is DatabaseError {
  return hasErrorCode(error, READ_ONLY_CODE_PATTERN);
}

export function isConnectionGone(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return (
    hasErrorCode(error, CONNECTION_GONE_CODE_PATTERN) ||
    (error.code === undefined && CONNECTION_GONE_MESSAGE_PATTERN.test(error.message))
  );
}

const CONNECTION_GONE_CODE_PATTERN =
  /^(08...|57P0[1235]|ER_(SERVER_SHUTDOWN|CONNECTION_KILLED|CLIENT_INTERACTION_TIMEOUT|(NEW_)?ABORTING_CONNECTION)|E(CONNRESET|PIPE|NOTCONN)|ERR_STREAM_(DESTROYED|WRITE_AFTER_END)|PROTOCOL_(CONNECTION_LOST|UNEXPECTED_PACKET|ENQUEUE_AFTER_.*))$/u;

/** Messages of errors that pg, pg-native, mysql2 and TypeORM report without a code. */
const CONNECTION_GONE_MESSAGE_PATTERN =
  /not queryable|query runner already released|connection (terminated|(is|was) (closed|lost)|not open)|in closed state|closed the connection|no connection to the server/iu;

export async function catchFailure(promise: Promise<unknown>): Promise<DatabaseError | LockError | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return toErrorWithoutStatement(error);
  }
}
