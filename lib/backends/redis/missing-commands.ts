import { LockConfigurationError } from '../../core/index.js';
import type { RedisServers } from './connection/redis-servers.js';
import { toLoggableError } from './error.js';
import { asList, createUnusedName, leaseKeyOf } from './scripts/redis-values.js';

/**
 * Script that returns those of its arguments that name a command the server does not have. KEYS[1] is an unused key,
 * because some proxies refuse scripts without keys.
 */
const FIND_UNKNOWN_COMMANDS_SCRIPT = `
local unknown = {}
for _, name in ipairs(ARGV) do
  local reply = redis.pcall(name)
  local error = type(reply) == 'table' and reply.err
  if error and string.find(string.lower(error), 'unknown') then unknown[#unknown + 1] = name end
end
return unknown
`;

const UNKNOWN_COMMAND_PATTERN = /unknown (?:redis )?command/iu;
const NO_SCRIPTS_PATTERN = /unknown command '?`?eval|scripting engine/iu;

/**
 * Returns an error that names the commands that the server lacks: the error of a script does not name them. Returns
 * `cause` unchanged if the server lacks neither scripts nor commands.
 */
export async function explainStartError(
  cause: unknown,
  servers: RedisServers,
  prefix: string,
  scriptCommands: readonly string[],
): Promise<unknown> {
  const { message } = toLoggableError(cause);
  if (NO_SCRIPTS_PATTERN.test(message)) {
    const remedy = "use a server with scripts, or mode: 'getset'";
    return new LockConfigurationError(
      `mode needs scripts, which this server does not run (${message}): ${remedy}`,
      'mode',
    );
  }
  if (!UNKNOWN_COMMAND_PATTERN.test(message)) return cause;
  const key = leaseKeyOf(prefix, createUnusedName());
  const commands = [['EVAL', FIND_UNKNOWN_COMMANDS_SCRIPT, 1, key, ...scriptCommands]] as const;
  const unknownCommands = await servers.send(key, { commands, read: ([names]) => asList(names) }).catch(() => []);
  const names = unknownCommands.length > 0 ? unknownCommands.join(', ') : message;
  return new LockConfigurationError(
    `mode needs commands that this server does not have: ${names}; queue needs Redis 6.0.6 or newer`,
    'mode',
  );
}
