import {
  errorText,
  type FailureKind,
  isLockError,
  LockConfigurationError,
  type LockError,
} from '../../../core/index.js';

/** Error of a database or its driver, without the statement: statements carry owner ids, which are secrets. */
export class DatabaseError extends Error {
  /** Whether the server itself refused a statement, over a connection that still works. */
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

/** Keeps the message and the code only: errors of TypeORM and of drivers show values of the statement. */
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

/** Reads a field of mysql2. The code of an error of `pg` is its SQLSTATE. */
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

/** `UNKNOWN_SQLITE_ERROR_1544` is what libsql reports for `SQLITE_READONLY_DIRECTORY`. */
const READ_ONLY_CODE_PATTERN =
  /^(25006|ER_(OPTION_PREVENTS_STATEMENT|OPEN_AS_READONLY|(INNODB_)?READ_ONLY(_MODE)?|CANT_EXECUTE_IN_READ_ONLY_TRANSACTION)|SQLITE_READONLY(_DBMOVED|_DIRECTORY)?|UNKNOWN_SQLITE_ERROR_1544)$/u;

/** Returns whether a healthy server refused the statement for its values, or for a right that the role lacks. */
export function isRefusedValueError(error: unknown): error is DatabaseError {
  return (
    error instanceof DatabaseError &&
    (REFUSED_VALUE_SQLSTATE_PATTERN.test(error.sqlState ?? '') || hasErrorCode(error, REFUSED_VALUE_CODE_PATTERN))
  );
}

/** Returns an error that the core does not retry: the same statement never succeeds, while other keys may. */
export function createRefusedValueError(error: DatabaseError): LockConfigurationError {
  const isAboutRole =
    MISSING_RIGHT_CODE_PATTERN.test(error.code ?? '') && !error.message.includes('row-level security');
  if (isAboutRole) return new LockConfigurationError(`the database refuses locks: ${error.message}`, 'tableName');
  return new LockConfigurationError(`the database refuses this key: ${error.message}`, 'key');
}

/** 42501 may also come from a policy of row-level security for the key. */
const MISSING_RIGHT_CODE_PATTERN = /^(42501|ER_(TABLE|COLUMN)ACCESS_DENIED_ERROR)$/u;

/** SQLSTATEs of data exceptions, constraints, insufficient privilege, and errors that triggers raise. */
const REFUSED_VALUE_SQLSTATE_PATTERN = /^(2[23][0-9A-Z]{3}|42501|45000|P0001)$/u;

/** Codes of errors of MySQL whose SQLSTATE is unspecific, and of errors of SQLite, which have no SQLSTATE. */
const REFUSED_VALUE_CODE_PATTERN =
  /^(ER_((TABLE|COLUMN)ACCESS_DENIED_ERROR|TRUNCATED_WRONG_VALUE_FOR_FIELD|CHECK_CONSTRAINT_VIOLATED)|SQLITE_(CONSTRAINT|MISMATCH|TOOBIG).*)$/u;

export function createSwitchOverError(): DatabaseError {
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

/** These errors of pg, pg-native, mysql2 and TypeORM have no code. */
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
