import { type FailureKind, isLockError, withFailureKind } from '../../core/index.js';

/** Fields of an error, read without `instanceof`, which fails for errors of another realm or copy of a package. */
type ErrorFields = Partial<Record<string, unknown>>;

/**
 * Returns an error that may be logged. The original error of ioredis also has the arguments of the command, such as a
 * password or the owner of a lock.
 */
export function toLoggableError(error: unknown): Error {
  if (isLockError(error)) return error;
  const kind = isErrorReply(error) ? failureKindOfReply(error) : 'silent';
  const loggableError = withFailureKind(new Error(getLoggableMessage(error)), kind);
  const { code }: ErrorFields = Object(error);
  return typeof code === 'string' ? Object.assign(loggableError, { code }) : loggableError;
}

const LOST_CONNECTION_PATTERN =
  /^(?:Stream isn't writeable|Socket closed unexpectedly|The client is (?:closed|offline)|The operation was aborted)/u;

function getLoggableMessage(error: unknown): string {
  const { name, message, errors }: ErrorFields = Object(error);
  // Node tries localhost as ::1 and as 127.0.0.1, and reports both errors.
  if (message === '' && Array.isArray(errors)) return errors.map(getLoggableMessage).join('; ');
  if (name === 'MaxRetriesPerRequestError' || message === 'Disconnects client')
    return 'the connection was lost before the answer';
  if (typeof message !== 'string' || message === '') return 'the client failed without a message';
  if (LOST_CONNECTION_PATTERN.test(message)) return 'the connection is lost';
  return message.replace(/,? with args beginning with:.*$/su, '');
}

export function isErrorReply(error: unknown): error is Error {
  if (typeof error !== 'object' || error === null || !('name' in error)) return false;
  return error.name === 'ReplyError' || isNodeRedisErrorReply(error);
}

/**
 * Recognizes `SimpleError` and `BlobError` of node-redis, which do not set `name`, by their parent class `ErrorReply`.
 * Where a bundler has shortened that name, the code at the start of the message decides.
 */
function isNodeRedisErrorReply(error: ErrorFields): boolean {
  if (error.name !== 'Error' || 'code' in error) return false;
  const parentClassName: unknown = Object.getPrototypeOf(Object.getPrototypeOf(error))?.constructor?.name;
  if (parentClassName === 'Error' || parentClassName === 'Object') return false;
  return parentClassName === 'ErrorReply' || /^[A-Z][A-Z0-9]+(?: |$)/u.test(String(error.message));
}

/** Errors of a healthy server that refers to another server, or demands another form of the command. */
const OTHER_SERVER_PATTERN = /\b(?:READONLY|MOVED|ASK|TRYAGAIN|MASTERDOWN|CROSSSLOT) /u;
/** Errors that concern only the key, or the user's right to it: another attempt would get the same error. */
const KEY_ERROR_PATTERN = /\bWRONGTYPE |\bNOPERM .*\bkeys?\b|can't access at least one of the keys/u;

function failureKindOfReply(reply: Error): FailureKind {
  if (KEY_ERROR_PATTERN.test(reply.message)) return 'value';
  return OTHER_SERVER_PATTERN.test(reply.message) || isUndeclaredKeyError(reply) ? 'elsewhere' : 'refuses';
}

/** Recognizes CROSSSLOT, and the different message of Alibaba's proxies. */
export function isCrossSlotError({ message }: Error): boolean {
  return /\bCROSSSLOT\b|keys must be in same slot/u.test(message);
}

export function isUnknownDatabaseError({ message }: Error): boolean {
  return /DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode/iu.test(message);
}

/**
 * Recognizes the refusals of Dragonfly and of some managed services: a script used a key that its command did not name.
 */
export function isUndeclaredKeyError({ message }: Error): boolean {
  return /undeclared key|keys? not declared|non local key|passed using the KEYS array/iu.test(message);
}

export function isUnknownScriptError({ message }: Error): boolean {
  return message.startsWith('NOSCRIPT');
}

/**
 * Recognizes the errors of a server that is no longer the master. A new connection to its host name may lead to the new
 * master. Redis before version 7 and KeyDB send these errors within the error of a script.
 */
export function isFormerMasterError({ message }: Error): boolean {
  return /\b(?:READONLY|MASTERDOWN|NOREPLICAS)\b/u.test(message);
}

export function isNoReplicasError({ message }: Error): boolean {
  return /\bNOREPLICAS\b/u.test(message);
}
