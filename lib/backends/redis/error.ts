import { LockError } from '../../core/index.js';

/** An error of another realm, or of a second copy of a package, is no `instanceof Error`. */
type Failure = Partial<Record<string, unknown>>;

/**
 * The error in words that may be logged: the message, and Node's code. ioredis adds the command with all its arguments,
 * which may be a password, or the owner of a lock.
 */
export function cleanError(error: unknown): Error {
  if (error instanceof LockError) return error;
  const clean = new Error(messageOf(error));
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
export function isReply(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'name' in error && error.name === 'ReplyError';
}

/** The server does not know a script by its name. */
export function isUnknownScript({ message }: Error): boolean {
  return message.startsWith('NOSCRIPT');
}

/** A replica has been asked to write. Servers before Redis 7, and KeyDB, name it within the error of a script. */
export function isReadOnly({ message }: Error): boolean {
  return /\bREADONLY\b/u.test(message);
}
