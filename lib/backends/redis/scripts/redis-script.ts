import { createHash } from 'node:crypto';
import type { RedisArgument } from '../connection/redis-client.js';

/** How many keys and arguments one call of a script has, and how many calls may share a command. */
interface ScriptShape {
  readonly keys: number;
  readonly args: number;
  /** A script blocks the server while it runs: its calls in one command take the server less than a millisecond. */
  readonly mostInACommand: number;
}

export interface RedisScript extends ScriptShape {
  readonly source: string;
  /** Under this name a server knows the script that has seen it. */
  readonly sha1: string;
}

export interface ScriptCall {
  readonly script: RedisScript;
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
}

/**
 * A Lua script that answers many calls in one command. `KEYS` and `ARGV` are those of one call. A call that fails does
 * not stop the others; one that is alone in its command fails as a command does.
 * @param functions may be shared by several scripts
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
local answers = {}
for i = 0, #all_keys / ${keys} - 1 do
  KEYS = {unpack(all_keys, i * ${keys} + 1, (i + 1) * ${keys})}
  ARGV = {unpack(all_args, i * ${args} + 1, (i + 1) * ${args})}
  local ok, answer = pcall(call)
  if not ok then answer = redis.error_reply(type(answer) == 'table' and answer.err or answer) end
  answers[i + 1] = answer
end
return answers
`;
  return { ...shape, source, sha1: createHash('sha1').update(source).digest('hex') };
}
