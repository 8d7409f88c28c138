import type { Command } from './transport/command.js';
import { areCredentials, type MemcachedCredentials } from './credentials.js';
import { type Given, given } from './given.js';
import type { MemcachedConnection, MemcachedConnectionOptions } from './transport/connection.js';
import { MemcachedError, unexpected } from './error.js';

export interface AuthenticationOptions extends MemcachedConnectionOptions {
  readonly credentials: Given<MemcachedCredentials> | undefined;
}

/**
 * Says who we are, if the server asks for it: one that does not would keep the password as an item, for everybody to read. It
 * answers one question at a time until then.
 * @throws MemcachedError that does not repeat the credentials
 */
export async function authenticate(connection: MemcachedConnection, options: AuthenticationOptions): Promise<void> {
  if (options.credentials === undefined) return;
  const [isOpen] = await connection.exchange(ASKS_NOBODY);
  if (isOpen) return;
  const credentials = await given('credentials', options.credentials, options);
  if (!areCredentials(credentials)) throw refused('the credentials are not { user, password }, without blanks');
  const text = `${credentials.user} ${credentials.password}`;
  await connection.exchange({
    text: `set auth 0 0 ${Buffer.byteLength(text)}\r\n${text}\r\n`,
    read: ({ line }) => {
      if (line === 'STORED') return true;
      throw refused('the server does not take these credentials');
    },
  });
}

/** What is said to whoever has not said who he is. */
export const UNAUTHENTICATED = 'CLIENT_ERROR unauthenticated';

const ASKS_NOBODY: Command<boolean> = {
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
