import { createHash } from 'node:crypto';
import type { RedisArgument } from '../connection/redis-client.js';

interface ScriptShape {
  /** Lua names of the keys. */
  readonly keys: readonly string[];
  /** Lua names of the arguments, which are texts. */
  readonly args: readonly string[];
  /** Maximum number of calls in a command, chosen so that a command blocks the server for less than a millisecond. */
  readonly maxCallsPerCommand: number;
  /** Whether the server reports later changes of the keys that the script reads: see `KeyTracking`. @default false */
  readonly isTracked?: boolean;
}

/** Lua code for calls that the common case does not answer. The Lua functions are created only for such calls. */
interface GeneralCase {
  readonly functions: string;
  readonly body: string;
}

export interface RedisScript {
  readonly keyCount: number;
  readonly maxCallsPerCommand: number;
  readonly isTracked: boolean;
  readonly source: string;
  readonly sha1: string;
}

export interface ScriptCall {
  readonly script: RedisScript;
  readonly keys: readonly string[];
  readonly args: readonly RedisArgument[];
}

/**
 * Returns a Lua script that answers several calls in one command. The script returns the list of their replies, or the
 * reply itself to a single call. A call that fails does not stop the others.
 * @param body Lua code of the common case, which returns the reply to one call, or `nil` to use the general case
 */
export function createScript(
  { keys, args, maxCallsPerCommand, isTracked = false }: ScriptShape,
  body: string,
  generalCase?: GeneralCase,
): RedisScript {
  const parameters = [...keys, ...args].join(', ');
  const keyValues = keys.map((_, index) => `KEYS[keys_before + ${index + 1}]`);
  const argValues = args.map((_, index) => `ARGV[args_before + ${index + 1}]`);
  const values = [...keyValues, ...argValues].join(', ');
  const source = `
local function answer_common_case(${parameters})
${body}
end
${generalCase ? generalCaseSource(parameters, generalCase) : ''}
local function answer(keys_before, args_before)
  local reply = answer_common_case(${values})
  ${generalCase ? `if reply == nil then reply = answer_general_case(${values}) end` : ''}
  return reply
end
if #KEYS == ${keys.length} then return answer(0, 0) end
local replies = {}
for call = 0, #KEYS / ${keys.length} - 1 do
  local is_ok, reply = pcall(answer, call * ${keys.length}, call * ${args.length})
  if not is_ok then reply = redis.error_reply(type(reply) == 'table' and reply.err or reply) end
  replies[call + 1] = reply
end
return replies
`;
  const sha1 = createHash('sha1').update(source).digest('hex');
  return { keyCount: keys.length, maxCallsPerCommand, isTracked, source, sha1 };
}

function generalCaseSource(parameters: string, { functions, body }: GeneralCase): string {
  return `
local function create_general_case()
${functions}
  return function(${parameters})
${body}
  end
end
local general_case
local function answer_general_case(...)
  general_case = general_case or create_general_case()
  return general_case(...)
end`;
}
