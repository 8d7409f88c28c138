import { areCredentials, type Credentials, type ValueOrGetter, getPresentValue } from '../../../core/index.js';
import { encode, type Message } from './protobuf.js';

/** Metadata by which a member without a leader refuses a request at once, instead of waiting for a leader. */
export const REQUIRE_LEADER = { hasleader: 'true' };

/** Resolves to a token for the present credentials. `authenticate` sends the encoded request for it. */
export async function requestToken(
  credentials: ValueOrGetter<Credentials>,
  maxMs: number,
  authenticate: (request: Buffer) => Promise<Message>,
): Promise<string> {
  const currentCredentials = await getPresentValue('credentials', credentials, maxMs);
  if (!areCredentials(currentCredentials))
    throw new Error('the credentials are not { username, password }, both of them text');
  const reply = await authenticate(encode([1, currentCredentials.username], [2, currentCredentials.password]));
  return reply.text(2);
}
