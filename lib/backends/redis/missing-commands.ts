import { LockConfigurationError } from '../../core/index.js';
import type { RedisServers } from './connection/redis-servers.js';
import { cleanError } from './error.js';
import { asList, leaseKeyOf, nobody } from './scripts/redis-values.js';

/** KEYS: one that is not used: some proxies refuse scripts without. ARGV: commands. Returns those that are unknown. */
const UNKNOWN_COMMANDS = `
local unknown = {}
for _, name in ipairs(ARGV) do
  local reply = redis.pcall(name)
  local error = type(reply) == 'table' and reply.err
  if error and string.find(string.lower(error), 'unknown') then unknown[#unknown + 1] = name end
end
return unknown
`;

const UNKNOWN = /unknown (?:redis )?command/iu;
/** An engine for Lua is a part of Valkey that can be left out. */
const NO_SCRIPTS = /unknown command '?`?eval|scripting engine/iu;

/**
 * Returns the error to show for `cause`, by which a server refused the first lock: with the names of the commands that
 * it does not have, which the answers of scripts do not say.
 * @param commands those that the scripts of this mode call
 */
export async function namedError(
  cause: unknown,
  servers: RedisServers,
  prefix: string,
  commands: readonly string[],
): Promise<unknown> {
  const { message } = cleanError(cause);
  if (NO_SCRIPTS.test(message)) {
    const remedy = "use a server with scripts, or mode: 'getset'";
    return new LockConfigurationError(
      `mode needs scripts, which this server does not run (${message}): ${remedy}`,
      'mode',
    );
  }
  if (!UNKNOWN.test(message)) return cause;
  const key = leaseKeyOf(prefix, nobody());
  const requests = [['EVAL', UNKNOWN_COMMANDS, 1, key, ...commands]] as const;
  const unknown = await servers.ask(key, { requests, read: ([names]) => asList(names) }).catch(() => []);
  const named = unknown.length > 0 ? unknown.join(', ') : message;
  return new LockConfigurationError(
    `mode needs commands that this server does not have: ${named}; queue needs Redis 6.0.6 or newer`,
    'mode',
  );
}
