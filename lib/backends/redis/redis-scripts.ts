import { createHash } from 'node:crypto';
import { TOKEN_STEP } from '../../core/hand-off-limits.js';
import type { RedisArgument, RedisCommand } from './redis-client.js';

/** A Lua script, and the name under which a server that has seen it knows it. */
export class RedisScript {
  readonly sha1: string;

  constructor(readonly source: string) {
    this.sha1 = createHash('sha1').update(source).digest('hex');
  }

  call(keys: readonly string[], args: readonly RedisArgument[]): ScriptCall {
    return {
      byName: ['EVALSHA', this.sha1, keys.length, ...keys, ...args],
      bySource: () => ['EVAL', this.source, keys.length, ...keys, ...args],
    };
  }
}

/** For a server that knows the script, and for one that does not. */
export interface ScriptCall {
  readonly byName: RedisCommand;
  bySource(): RedisCommand;
}

export type RedisRequest = RedisCommand | ScriptCall;

/** For how long a waiter that was handed the key has it, until it says that it is there. */
const GRANT_MS = 5_000;
/** How long a queue outlives the last question of a waiter: more than twice the longest pause between two of them. */
const QUEUE_MS = 120_000;
/**
 * How long the last token is remembered after the lease; later, the server's clock alone makes tokens grow. Redis keeps the end
 * of that time by the same clock: one that is set back keeps the token for as much longer. A server that counts otherwise may
 * set its clock back by this much, and tokens still grow.
 */
const FENCE_MS = 3_600_000;

/** Returns how many connections got a message. */
const PUBLISH = `
local function publish(channel, message)
  return redis.call('PUBLISH', channel, message)
end
`;

/** The same on a cluster. A channel whose slot has gone to another node cannot be reached from here; who listens knows that. */
const SHARDED_PUBLISH = `
local function publish(channel, message)
  local reached = redis.pcall('SPUBLISH', channel, message)
  return type(reached) == 'number' and reached or 0
end
`;

/**
 * What the scripts of the queue share, after `publish`. KEYS: lease, queue, fence.
 *
 * lease = `owner|token|metadata`. queue = list of `owner|channel|ttl|metadata`, first come first. fence = the last token.
 * Messages are `owner|milliseconds`: ask (again) after so long, 0 = the key is yours.
 */
const QUEUE_FUNCTIONS = `
-- A token is greater than the one before by the step, and not less than the server's clock in microseconds, so that it grows
-- even when the fence is lost. Both are below 2^53, where doubles are exact.
local function grant(owner, metadata, ttl)
  local now = redis.call('TIME')
  local last = tonumber(redis.call('GET', KEYS[3])) or 0
  local token = string.format('%.0f', math.max(last + ${TOKEN_STEP}, now[1] * 1000000 + now[2]))
  redis.call('SET', KEYS[3], token, 'PX', ttl + ${FENCE_MS})
  redis.call('SET', KEYS[1], owner .. '|' .. token .. '|' .. metadata, 'PX', ttl)
  return token
end

-- Sends a message to the first waiter whose process still listens; those before it are gone and leave the queue.
local function notify_head(delay)
  while true do
    local entry = redis.call('LINDEX', KEYS[2], 0)
    if not entry then return nil end
    local owner, channel, ttl, metadata = string.match(entry, '^([^|]*)|([^|]*)|(%d+)|(.*)$')
    if owner and publish(channel, owner .. '|' .. delay) > 0 then return owner, metadata, tonumber(ttl) end
    redis.call('LPOP', KEYS[2])
  end
end

-- Gives the key to the first live waiter, who confirms by asking. The next one is told when to look whether that happened.
local function hand_over()
  local owner, metadata, ttl = notify_head(0)
  if not owner then return false end
  -- First, because a server that is full still lets a script write which has freed something.
  redis.call('LPOP', KEYS[2])
  local short = math.min(ttl, ${GRANT_MS})
  grant(owner, metadata, short)
  notify_head(short)
  return true
end

local function find_waiter(owner)
  for place, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    if string.sub(entry, 1, #owner + 1) == owner .. '|' then return place - 1, entry end
  end
  return nil
end
`;

/**
 * KEYS: lease, queue, fence. ARGV: owner, ttl in ms, metadata, channel to be woken on ('' = do not queue).
 * Returns {1, token} or {0, ms left of the lease, lease, place in the queue from 0 or -1}.
 */
const ACQUIRE = `
local owner, ttl, metadata, channel = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local lease = redis.call('GET', KEYS[1])
if not lease then
  if not hand_over() then return {1, grant(owner, metadata, ttl)} end
  lease = redis.call('GET', KEYS[1])
end
local holder, token = string.match(lease, '^([^|]*)|([^|]*)|')
if holder == owner then
  redis.call('PEXPIRE', KEYS[1], ttl)
  return {1, token}
end
local place = -1
if channel ~= '' then
  place = find_waiter(owner)
  if not place then
    place = redis.call('RPUSH', KEYS[2], owner .. '|' .. channel .. '|' .. ARGV[2] .. '|' .. metadata) - 1
  end
end
-- Also where there is no queue: a server that may not write says so now, instead of who had the key when it last knew.
redis.call('PEXPIRE', KEYS[2], ${QUEUE_MS})
return {0, redis.call('PTTL', KEYS[1]), lease, place}
`;

/**
 * KEYS: lease, queue, fence. ARGV: owner. Passes the key on, or leaves the queue.
 * Returns 1 if the key was the owner's, else 0.
 */
const RELEASE = `
local owner = ARGV[1]
local lease = redis.call('GET', KEYS[1])
if lease and string.match(lease, '^[^|]*') == owner then
  if not hand_over() then redis.call('DEL', KEYS[1]) end
  return 1
end
local place, entry = find_waiter(owner)
if place then redis.call('LREM', KEYS[2], 1, entry) end
if place == 0 then
  if lease then notify_head(math.max(redis.call('PTTL', KEYS[1]), 1)) else hand_over() end
end
return 0
`;

/** The two scripts of the queue, for one server or for a cluster. */
export class QueueScripts {
  readonly acquire: RedisScript;
  readonly release: RedisScript;

  constructor(options: { readonly sharded: boolean }) {
    const functions = `${options.sharded ? SHARDED_PUBLISH : PUBLISH}${QUEUE_FUNCTIONS}`;
    this.acquire = new RedisScript(functions + ACQUIRE);
    this.release = new RedisScript(functions + RELEASE);
  }
}

/**
 * KEYS: lease. ARGV: what the lease is to be, ttl in ms. `SET NX PX`, in a script for the sake of the clock that goes with it.
 * Returns {1, the server's clock} or {0, the server's clock, what is there, ms left of it}.
 */
export const SET_IF_FREE = new RedisScript(`
local set, now = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]), redis.call('TIME')
if set then return {1, now} end
return {0, now, redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}
`);

/** KEYS: lease. ARGV: owner. Returns 1 if the key was the owner's and is now free, else 0. */
export const COMPARE_AND_DELETE = new RedisScript(`
local lease = redis.call('GET', KEYS[1])
if not lease or string.sub(lease, 1, #ARGV[1] + 1) ~= ARGV[1] .. '|' then return 0 end
return redis.call('DEL', KEYS[1])
`);

/**
 * KEYS: n leases. ARGV: ttl in ms, and `owner|` n times in one string: clients take longer over an argument than over its text.
 * Returns a digit for each, 1 (still the owner's, for another ttl) or 0, as one string for the same reason. What is no string
 * any more is nobody's lease, and no reason to fail the others: hence pcall.
 */
export const RENEW = new RedisScript(`
local ttl, answers = ARGV[1], {}
for owner in string.gmatch(ARGV[2], '([^|]*)|') do
  local key = KEYS[#answers + 1]
  local lease = redis.pcall('GET', key)
  local ours = type(lease) == 'string' and string.sub(lease, 1, #owner + 1) == owner .. '|'
  answers[#answers + 1] = ours and redis.call('PEXPIRE', key, ttl) or 0
end
return table.concat(answers)
`);
