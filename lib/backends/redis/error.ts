import { type FailureKind, isLockError, withFailureKind } from '../../core/index.js';

/** Fields of an error, read without `instanceof`: that fails for errors of another realm or copy of a package. */
type ErrorFields = Partial<Record<string, unknown>>;

/**
 * Returns an error that may be logged, with the message and Node's code. The original error of ioredis also has the
 * arguments of the command, such as a password or the owner of a lock.
 */
export function toLoggableError(error: unknown): Error {
  if (isLockError(error)) return error;
  const kind = isErrorReply(error) ? failureKindOf(error) : 'silent';
  const loggableError = withFailureKind(new Error(messageOf(error)), kind);
  const { code }: ErrorFields = Object(error);
  return typeof code === 'string' ? Object.assign(loggableError, { code }) : loggableError;
}

/** Messages of ioredis and node-redis for a lost connection. */
const LOST_CONNECTION_PATTERN =
  /^(?:Stream isn't writeable|Socket closed unexpectedly|The client is (?:closed|offline)|The operation was aborted)/u;

function messageOf(error: unknown): string {
  const { name, message, errors }: ErrorFields = Object(error);
  // Node tries localhost as ::1 and as 127.0.0.1, and reports both errors.
  if (message === '' && Array.isArray(errors)) return errors.map(messageOf).join('; ');
  if (name === 'MaxRetriesPerRequestError' || message === 'Disconnects client')
    return 'the connection was lost before the answer';
  if (typeof message !== 'string' || message === '') return 'the client failed without a message';
  if (LOST_CONNECTION_PATTERN.test(message)) return 'the connection is lost';
  return message.replace(/,? with args beginning with:.*$/su, '');
}

/** Returns whether the server answered with this error. */
export function isErrorReply(error: unknown): error is Error {
  if (typeof error !== 'object' || error === null || !('name' in error)) return false;
  return error.name === 'ReplyError' || isNodeRedisErrorReply(error);
}

/**
 * Returns whether the error is a `SimpleError` or `BlobError` of node-redis, which do not set `name`. Their parent class is
 * `ErrorReply`. Where a bundler has shortened that name, the code at the start of the message decides.
 */
function isNodeRedisErrorReply(error: ErrorFields): boolean {
  if (error.name !== 'Error' || 'code' in error) return false;
  const parentClass: unknown = Object.getPrototypeOf(Object.getPrototypeOf(error))?.constructor?.name;
  if (parentClass === 'Error' || parentClass === 'Object') return false;
  return parentClass === 'ErrorReply' || /^[A-Z][A-Z0-9]+(?: |$)/u.test(String(error.message));
}

/** Errors of a healthy server that refers to another server, or demands another form of the command. */
const OTHER_SERVER_PATTERN = /\b(?:READONLY|MOVED|ASK|TRYAGAIN|MASTERDOWN|CROSSSLOT) /u;
/** Errors about one key: it has another program's value, or the user has no right to it. */
const KEY_ERROR_PATTERN = /\bWRONGTYPE |\bNOPERM .*\bkeys?\b|can't access at least one of the keys/u;

function failureKindOf(reply: Error): FailureKind {
  if (KEY_ERROR_PATTERN.test(reply.message)) return 'value';
  return OTHER_SERVER_PATTERN.test(reply.message) || isUndeclaredKeyError(reply) ? 'elsewhere' : 'refuses';
}

/** Returns whether the server refused a command with keys of several slots. Alibaba's proxies have their own message. */
export function isCrossSlotError({ message }: Error): boolean {
  return /\bCROSSSLOT\b|keys must be in same slot/u.test(message);
}

/** Returns whether `SELECT` named a database that the server does not have. A cluster has one database only. */
export function isUnknownDatabaseError({ message }: Error): boolean {
  return /DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode/iu.test(message);
}

/** Returns whether a script has used a key that its command did not name. Dragonfly and some managed services refuse that. */
export function isUndeclaredKeyError({ message }: Error): boolean {
  return /undeclared key|keys? not declared|non local key|passed using the KEYS array/iu.test(message);
}

/** Returns whether the server does not know the SHA-1 of a script. */
export function isUnknownScriptError({ message }: Error): boolean {
  return message.startsWith('NOSCRIPT');
}

/** Returns whether a replica was asked to write. Redis before version 7, and KeyDB, put READONLY within a script's error. */
export function isReadOnlyError({ message }: Error): boolean {
  return /\bREADONLY\b/u.test(message);
}
