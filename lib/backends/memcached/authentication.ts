import { type Credentials, type Given, given } from '../../core/index.js';
import { MemcachedError, unexpected } from './error.js';
import { areMemcachedCredentials } from './options.js';
import type { MemcachedConnection } from './transport/connection.js';
import { type Command, refusal } from './transport/pipeline.js';

/** The answer to a client that is not authenticated. */
const UNAUTHENTICATED = 'CLIENT_ERROR unauthenticated';

/**
 * Authenticates if the server asks for it. Another server would store the password as an item that everybody may read.
 * A server answers one request at a time until it has accepted the credentials; memcached 1.6.45 hangs up on who sends
 * more, without a reason.
 * @throws MemcachedError that does not repeat the credentials
 */
export async function authenticate(
  connection: MemcachedConnection,
  credentials: Given<Credentials> | undefined,
  longestMs: number,
): Promise<void> {
  const [isOpen] = await connection.exchange(IS_OPEN);
  if (isOpen) return;
  if (credentials === undefined) throw refusal('CLIENT_ERROR whoever has no credentials: see the option "credentials"');
  const current = await given('credentials', credentials, longestMs);
  if (!areMemcachedCredentials(current))
    throw new MemcachedError('refused', 'the credentials are not { username, password }, without blanks');
  const text = `${current.username} ${current.password}`;
  await connection.exchange({
    text: `set auth 0 0 ${Buffer.byteLength(text)}\r\n${text}\r\n`,
    read: ({ line }) => {
      if (line === 'STORED') return true;
      throw new MemcachedError('refused', 'the server does not take these credentials');
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
