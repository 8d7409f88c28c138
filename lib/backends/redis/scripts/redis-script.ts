import { createHash } from 'node:crypto';
import type { RedisArgument } from '../connection/redis-client.js';

/** Number of keys and arguments of one call, and number of calls that may share a command. */
interface ScriptShape {
  readonly keys: number;
  readonly args: number;
  /** Number of calls that block the server for less than a millisecond: it does nothing else while a script runs. */
  readonly maxCallsPerCommand: number;
}

export interface RedisScript extends ScriptShape {
  readonly source: string;
  /** Name for `EVALSHA` on a server that has run the script. */
  readonly sha1: string;
}

export interface ScriptCall {
  readonly script: RedisScript;
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
}

/**
 * Returns a Lua script that answers many calls in one command. In `body`, `KEYS` and `ARGV` are those of one call. A call
 * that fails does not stop the others. A call that is alone in its command fails as the command.
 * @param functions Lua functions for the body, which several scripts may share
 */
export function redisScript(shape: ScriptShape, body: string, functions = ''): RedisScript {
  const { keys, args } = shape;
  const source = `
local all_keys, all_args = KEYS, ARGV
local KEYS, ARGV = KEYS, ARGV
${functions}
local function call()
${body}
end
if #all_keys == ${keys} then return {call()} end
local replies = {}
for i = 0, #all_keys / ${keys} - 1 do
  KEYS = {unpack(all_keys, i * ${keys} + 1, (i + 1) * ${keys})}
  ARGV = {unpack(all_args, i * ${args} + 1, (i + 1) * ${args})}
  local is_ok, reply = pcall(call)
  if not is_ok then reply = redis.error_reply(type(reply) == 'table' and reply.err or reply) end
  replies[i + 1] = reply
end
return replies
`;
  return { ...shape, source, sha1: createHash('sha1').update(source).digest('hex') };
}
