import { type Credentials, type ValueOrGetter, getPresentValue } from '../../core/index.js';
import { MemcachedError, unexpectedReplyError } from './error.js';
import { areMemcachedCredentials } from './options.js';
import type { MemcachedConnection } from './transport/connection.js';
import { type Command, refusalError } from './transport/pipeline.js';

const UNAUTHENTICATED_REPLY = 'CLIENT_ERROR unauthenticated';

/**
 * Sends the credentials only to a server that requires them. Any other server would store the password as an item that
 * everybody may read.
 * Sends one request at a time, because memcached 1.6.45 closes a connection that sends more before the authentication.
 * @throws MemcachedError that does not repeat the credentials
 */
export async function authenticate(
  connection: MemcachedConnection,
  credentials: ValueOrGetter<Credentials> | undefined,
  timeoutMs: number,
): Promise<void> {
  const [isAuthenticated] = await connection.exchange(VERSION_COMMAND);
  if (isAuthenticated) return;
  if (credentials === undefined)
    throw refusalError('CLIENT_ERROR whoever has no credentials: see the option "credentials"');
  const currentCredentials = await getPresentValue('credentials', credentials, timeoutMs);
  if (!areMemcachedCredentials(currentCredentials))
    throw new MemcachedError('refused', 'the credentials are not { username, password }, without blanks');
  const text = `${currentCredentials.username} ${currentCredentials.password}`;
  await connection.exchange({
    text: `set auth 0 0 ${Buffer.byteLength(text)}\r\n${text}\r\n`,
    read: ({ line }) => {
      if (line === 'STORED') return true;
      throw new MemcachedError('refused', 'the server does not take these credentials');
    },
  });
}

const VERSION_COMMAND: Command<boolean> = {
  text: 'version\r\n',
  read: ({ line }) => {
    if (line.startsWith('VERSION ')) return true;
    if (line === UNAUTHENTICATED_REPLY) return false;
    throw unexpectedReplyError(line);
  },
};
