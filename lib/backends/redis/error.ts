import { LockError } from '../../core/index.js';

/** What errors may look like; those of another realm or of a second copy of a package are no `instanceof` of ours. */
interface Failure {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly errors?: unknown;
}

/**
 * What went wrong, in words that may be logged. ioredis hangs the command with all its arguments on an error, which for AUTH
 * and HELLO is the password and for ours the owner, so nothing of it is passed on but the message and Node's code.
 */
export function cleanError(error: unknown): Error {
  if (error instanceof LockError) return error;
  const clean = new Error(messageOf(error));
  const { code } = failureOf(error);
  return typeof code === 'string' ? Object.assign(clean, { code }) : clean;
}

function messageOf(error: unknown): string {
  const { name, message, errors } = failureOf(error);
  // localhost tried as ::1 and as 127.0.0.1
  if (message === '' && Array.isArray(errors)) return errors.map(messageOf).join('; ');
  if (name === 'MaxRetriesPerRequestError') return 'the connection was lost before the answer';
  if (typeof message !== 'string' || message === '') return 'the client failed without a message';
  if (message.startsWith("Stream isn't writeable")) return 'the connection is lost';
  return message.replace(/,? with args beginning with:.*$/su, '');
}

function failureOf(error: unknown): Failure {
  return typeof error === 'object' && error !== null ? error : {};
}

/** Whether the server has said so. */
export function isReply(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'name' in error && error.name === 'ReplyError';
}

/** The server does not know a script by its name. */
export function isUnknownScript({ message }: Error): boolean {
  return message.startsWith('NOSCRIPT');
}

/** A replica has been asked to write. Servers before Redis 7, and KeyDB, tell so of a script in the middle of their answer. */
export function isReadOnly({ message }: Error): boolean {
  return /\bREADONLY\b/u.test(message);
}
