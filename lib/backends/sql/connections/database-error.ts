import {
  errorText,
  type FailureKind,
  isLockError,
  LockConfigurationError,
  type LockError,
} from '../../../core/index.js';

/** The words of a database or its driver, without the statement: statements carry owner ids, which are secrets. */
export class DatabaseError extends Error {
  /** Whether a server said this about a statement, over a connection that goes on: the server is there, whatever it refuses. */
  isAnswer = false;

  constructor(
    message: string,
    /** As the driver has it: an SQLSTATE, `ER_LOCK_DEADLOCK`, `SQLITE_BUSY`, `ECONNREFUSED`. */
    readonly code: string | undefined,
    /** As the server has it; `undefined` where driver or database have none. */
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

/** Keeps the message and the code only: the errors of TypeORM and of drivers show values of the statement. */
export function cleanError(error: unknown): DatabaseError | LockError {
  if (error instanceof DatabaseError || isLockError(error)) return error;
  // TypeORM and others wrap the error of the driver.
  const cause: unknown = error instanceof Error && 'driverError' in error ? error.driverError : error;
  // libsql throws objects, too.
  const code = textIn(cause, 'code');
  const advice = adviceOn(code ?? '');
  return new DatabaseError(errorText(cause) + advice, code, sqlStateOf(cause) ?? code);
}

function adviceOn(code: string): string {
  if (READ_ONLY.test(code)) return `: ${WRITABLE}`;
  return /^SQLITE_(BUSY|LOCKED)$/u.test(code) ? `: ${ONE_WRITER}` : '';
}

/** SQLite lets one connection of a file write at a time, until the end of its transaction. */
const ONE_WRITER =
  'another connection is in a transaction that writes to this SQLite file, such as one of the application; take the ' +
  'lock before it begins, or give the locks a data source with a file of their own';

/** The field of mysql2; `pg` has it as the code. */
function sqlStateOf(cause: unknown): string | undefined {
  return textIn(cause, 'sqlState');
}

function textIn(cause: unknown, property: string): string | undefined {
  const text: unknown = typeof cause === 'object' && cause !== null ? Reflect.get(cause, property) : undefined;
  return typeof text === 'string' ? text : undefined;
}

/** Whether the database answered with one of these codes. */
export function isAnswer(error: unknown, codes: RegExp | undefined): boolean {
  return error instanceof DatabaseError && codes?.test(error.code ?? '') === true;
}

export const WRITABLE = 'locks need a database that takes writes, and not a replica or one that is read-only';

/** Codes of PostgreSQL, of MySQL and MariaDB, of SQLite, and the last one again as libsql has it. */
const READ_ONLY =
  /^(25006|ER_(OPTION_PREVENTS_STATEMENT|READ_ONLY_MODE|CANT_EXECUTE_IN_READ_ONLY_TRANSACTION)|SQLITE_READONLY(_DBMOVED|_DIRECTORY)?|UNKNOWN_SQLITE_ERROR_1544)$/u;

/** Whether a healthy server refused this statement for its values, or for what the caller may do with them. */
export function isRefusedValueError(error: unknown): error is DatabaseError {
  return error instanceof DatabaseError && (VALUE_STATES.test(error.sqlState ?? '') || isAnswer(error, VALUE_CODES));
}

/** Tells a caller at once: the same statement never succeeds, and others do, unless nobody has the right to it. */
export function refusedValueError(error: DatabaseError): LockConfigurationError {
  const isAboutRole = RIGHTS.test(error.code ?? '') && !error.message.includes('row-level security');
  if (isAboutRole) return new LockConfigurationError(`the database refuses locks: ${error.message}`, 'tableName');
  return new LockConfigurationError(`the database refuses this key: ${error.message}`, 'key');
}

/** Codes for a right that the role does not have. Policies of row-level security, which look at the key, share one. */
const RIGHTS = /^(42501|ER_(TABLE|COLUMN)ACCESS_DENIED_ERROR)$/u;

/** SQLSTATEs: data exceptions, constraints, insufficient privilege, and what triggers raise. */
const VALUE_STATES = /^(2[23][0-9A-Z]{3}|42501|45000|P0001)$/u;

/** Codes of the same kind whose SQLSTATE says less, and of SQLite, which has none. */
const VALUE_CODES =
  /^(ER_((TABLE|COLUMN)ACCESS_DENIED_ERROR|TRUNCATED_WRONG_VALUE_FOR_FIELD|CHECK_CONSTRAINT_VIOLATED)|SQLITE_(CONSTRAINT|MISMATCH|TOOBIG).*)$/u;

/** The error of a server that took writes before, and takes none now: the locks have moved to another one. */
export function switchOverError(): DatabaseError {
  return new DatabaseError(`the server no longer takes writes: ${WRITABLE}`, '25006');
}

/** Whether the server takes no writes. */
export function isReadOnlyError(error: unknown): error is DatabaseError {
  return isAnswer(error, READ_ONLY);
}

/** Whether the connection is over, by what the server said at its end or by what the driver says since. */
export function isConnectionGone(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return isAnswer(error, CONNECTION_GONE) || (error.code === undefined && CONNECTION_GONE_TEXT.test(error.message));
}

/** Codes of PostgreSQL, of MySQL and MariaDB, of Node, of mysql2. */
const CONNECTION_GONE =
  /^(08...|57P0[1235]|ER_(SERVER_SHUTDOWN|CONNECTION_KILLED|CLIENT_INTERACTION_TIMEOUT|(NEW_)?ABORTING_CONNECTION)|E(CONNRESET|PIPE|NOTCONN)|ERR_STREAM_(DESTROYED|WRITE_AFTER_END)|PROTOCOL_(CONNECTION_LOST|UNEXPECTED_PACKET|ENQUEUE_AFTER_.*))$/u;

/** The words of pg, pg-native, mysql2 and TypeORM, which have no code for it. */
const CONNECTION_GONE_TEXT =
  /not queryable|query runner already released|connection (terminated|(is|was) (closed|lost)|not open)|in closed state|closed the connection|no connection to the server/iu;

/** The error of `promise`, if it rejects. */
export async function failureOf(promise: Promise<unknown>): Promise<DatabaseError | LockError | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return cleanError(error);
  }
}
