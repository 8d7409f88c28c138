import { createHash } from 'node:crypto';
import type { RedisArgument } from '../connection/redis-client.js';

/** How many keys and arguments one call of a script has, and how many calls may share a command. */
export interface ScriptShape {
  readonly keys: number;
  readonly args: number;
  /** A script blocks the server while it runs: its calls in one command take the server less than a millisecond. */
  readonly mostInACommand: number;
}

/**
 * A Lua script that answers many calls in one command, each with keys and arguments of its own. `KEYS` and `ARGV` are those of
 * one call. A call that fails does not stop the others; one that is alone in its command fails as a command does.
 */
export class RedisScript {
  readonly source: string;
  /** Under this name a server knows the script that has seen it. */
  readonly sha1: string;

  /** @param functions may be shared by several scripts */
  constructor(
    readonly shape: ScriptShape,
    body: string,
    functions = '',
  ) {
    this.source = withCalls(shape, body, functions);
    this.sha1 = createHash('sha1').update(this.source).digest('hex');
  }

  call(keys: readonly string[], args: readonly RedisArgument[]): ScriptCall {
    return { script: this, keys, args };
  }
}

export interface ScriptCall {
  readonly script: RedisScript;
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
}

function withCalls({ keys, args }: ScriptShape, body: string, functions: string): string {
  return `
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
}
