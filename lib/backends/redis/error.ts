import { type FailureKind, isLockError, withFailureKind } from '../../core/index.js';

/** An error of another realm, or of a second copy of a package, is no `instanceof Error`. */
type Failure = Partial<Record<string, unknown>>;

/**
 * The error in words that may be logged: the message, and Node's code. ioredis adds the command with all its arguments,
 * which may be a password, or the owner of a lock.
 */
export function cleanError(error: unknown): Error {
  if (isLockError(error)) return error;
  const clean = withFailureKind(new Error(messageOf(error)), isReply(error) ? replyKind(error) : 'silent');
  const { code }: Failure = Object(error);
  return typeof code === 'string' ? Object.assign(clean, { code }) : clean;
}

function messageOf(error: unknown): string {
  const { name, message, errors }: Failure = Object(error);
  // localhost tried as ::1 and as 127.0.0.1
  if (message === '' && Array.isArray(errors)) return errors.map(messageOf).join('; ');
  if (name === 'MaxRetriesPerRequestError') return 'the connection was lost before the answer';
  if (typeof message !== 'string' || message === '') return 'the client failed without a message';
  if (message.startsWith("Stream isn't writeable")) return 'the connection is lost';
  return message.replace(/,? with args beginning with:.*$/su, '');
}

/** Whether it came from the server. */
export function isReply(error: unknown): error is Error {
  return typeof error === 'object' && error !== null && 'name' in error && error.name === 'ReplyError';
}

/** The server is well, and another one has to be asked, or the same one in another way. */
const ELSEWHERE = /\b(?:READONLY|MOVED|ASK|TRYAGAIN|MASTERDOWN|CROSSSLOT) /u;
/** The server is well and refuses this key: somebody else's value is there, or the user has no right to the key. */
const ABOUT_KEY = /\bWRONGTYPE |\bNOPERM .*\bkeys?\b|can't access at least one of the keys/u;

function replyKind(reply: Error): FailureKind {
  if (ABOUT_KEY.test(reply.message)) return 'value';
  return ELSEWHERE.test(reply.message) || isUndeclaredKey(reply) ? 'elsewhere' : 'refuses';
}

/** Keys of several slots were in one command, which clusters refuse, and Alibaba's proxies in words of their own. */
export function isCrossSlot({ message }: Error): boolean {
  return /\bCROSSSLOT\b|keys must be in same slot/u.test(message);
}

/** `SELECT` was refused, also by a server that follows the rules of a cluster and has one database. */
export function isUnknownDatabase({ message }: Error): boolean {
  return /DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode/iu.test(message);
}

/** A script has used a key that the command did not name. Dragonfly and some managed services refuse that. */
export function isUndeclaredKey({ message }: Error): boolean {
  return /undeclared key|keys? not declared|non local key|passed using the KEYS array/iu.test(message);
}

/** The server does not know a script by its name. */
export function isUnknownScript({ message }: Error): boolean {
  return message.startsWith('NOSCRIPT');
}

/** A replica has been asked to write. Servers before Redis 7, and KeyDB, name it within the error of a script. */
export function isReadOnly({ message }: Error): boolean {
  return /\bREADONLY\b/u.test(message);
}
