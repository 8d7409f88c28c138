import { areCredentials, type Credentials, type Given, given } from '../../core/index.js';
import { MemcachedError, unexpected } from './error.js';
import type { MemcachedConnection } from './transport/connection.js';
import type { Command } from './transport/pipeline.js';

/** On the wire a blank ends the username, and in the file of users a colon does. */
const USERNAME = /^[^\s:\p{C}]{1,100}$/u;
const PASSWORD = /^[^\s\p{C}]{1,100}$/u;

/** The answer to a client that is not authenticated. */
export const UNAUTHENTICATED = 'CLIENT_ERROR unauthenticated';

export function areMemcachedCredentials(value: unknown): value is Credentials {
  return areCredentials(value) && USERNAME.test(value.username) && PASSWORD.test(value.password);
}

/**
 * Authenticates if the server asks for it. A server that does not would store the password as an item, for everybody to
 * read. Until it has accepted the credentials, a server answers one request at a time.
 * @throws MemcachedError that does not repeat the credentials
 */
export async function authenticate(
  connection: MemcachedConnection,
  credentials: Given<Credentials> | undefined,
  longestMs: number,
): Promise<void> {
  if (credentials === undefined) return;
  const [isOpen] = await connection.exchange(IS_OPEN);
  if (isOpen) return;
  const current = await given('credentials', credentials, longestMs);
  if (!areMemcachedCredentials(current))
    throw refused('the credentials are not { username, password }, without blanks');
  const text = `${current.username} ${current.password}`;
  await connection.exchange({
    text: `set auth 0 0 ${Buffer.byteLength(text)}\r\n${text}\r\n`,
    read: ({ line }) => {
      if (line === 'STORED') return true;
      throw refused('the server does not take these credentials');
    },
  });
}

const IS_OPEN: Command<boolean> = {
  text: 'version\r\n',
  read: ({ line }) => {
    if (line.startsWith('VERSION ')) return true;
    if (line === UNAUTHENTICATED) return false;
    throw unexpected(line);
  },
};

function refused(why: string): MemcachedError {
  return new MemcachedError('refused', why);
}
