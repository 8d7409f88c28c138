import { redisScript } from './redis-script.js';

/** How long a waiter has the key that it was handed, until it asks. */
const GRANT_MS = 5_000;
/** The same after a holder that has died, or a waiter that did not ask. */
const NEXT_GRANT_MS = 2_000;
/** Waiters ask more often than that, also when nobody wakes them. The queue passes over those that do not. */
const SILENT_MS = 4_800;
/** How long a queue, and an entry in it, outlive the last question of a waiter. */
const QUEUE_MS = 120_000;
/**
 * How long the last token is remembered after the lease. Later the server's clock alone makes tokens grow. Redis keeps
 * that time by the same clock: one that is set back keeps the token for as much longer. Other servers may set their
 * clocks back by this much, and tokens still grow.
 */
const FENCE_MS = 3_600_000;

/**
 * Sends a message, unless nobody listens. The count of PUBLISH includes subscribers to a pattern, such as monitoring
 * tools. Where NUMSUB is refused, everybody counts as listening.
 */
const PUBLISH = `
local function reaches(channel, message)
  local listeners = redis.pcall('PUBSUB', 'NUMSUB', channel)
  if listeners[2] == 0 then return false end
  redis.call('PUBLISH', channel, message)
  return true
end
`;

/** The same on a cluster. A channel whose slot has moved to another node cannot be reached; its listeners know. */
const SHARDED_PUBLISH = `
local function reaches(channel, message)
  local reached = redis.pcall('SPUBLISH', channel, message)
  return type(reached) == 'number' and reached > 0
end
`;

/**
 * The scripts of the queue share these functions, after `reaches`. KEYS: lease, and on a cluster queue, fence and
 * waiters, as `queueKeysOf` has them. A single server puts their names together itself.
 *
 * lease = `owner|token|metadata`. queue = list of owners, first come first. waiters = hash by owner,
 * `channel|seen|ttl|metadata`: seen is the time in ms of the waiter's last question, and negative once it was passed
 * over. fence = the last token. Messages are `owner|0`: ask again, the key is yours.
 */
const QUEUE_FUNCTIONS = `
local LEASE, QUEUE, FENCE, WAITERS
local function name_keys()
  LEASE = KEYS[1]
  QUEUE, FENCE, WAITERS = LEASE .. ':q', LEASE .. ':f', LEASE .. ':w'
end

-- A token is greater than the one before, and not less than the server's clock in microseconds, so that it grows even
-- when the fence is lost. Both are below 2^53, where doubles are exact.
local function grant(owner, metadata, ttl)
  local now = redis.call('TIME')
  local last = tonumber(redis.call('GET', FENCE)) or 0
  local token = string.format('%.0f', math.max(last + 1, now[1] * 1000000 + now[2]))
  redis.call('SET', FENCE, token, 'PX', ttl + ${FENCE_MS})
  redis.call('SET', LEASE, owner .. '|' .. token .. '|' .. metadata, 'PX', ttl)
  return token
end

local function now_ms()
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end

local function note(owner, channel, seen, ttl, metadata)
  redis.call('HSET', WAITERS, owner, channel .. '|' .. string.format('%.0f', seen) .. '|' .. ttl .. '|' .. metadata)
end

local function leave(owner)
  redis.call('LREM', QUEUE, 1, owner)
  redis.call('HDEL', WAITERS, owner)
end

-- Takes the first waiter that is there out of the queue, and tells it so unless it is the one who asks. Waiters that do
-- not listen any more leave. Waiters that were silent for longer than the limit keep their entries, and are passed over.
local function next_waiter(asker, limit)
  local index, now = 0, nil
  while true do
    local owner = redis.call('LINDEX', QUEUE, index)
    if not owner then return nil end
    local entry = redis.call('HGET', WAITERS, owner) or ''
    local channel, seen, ttl, metadata = string.match(entry, '^([^|]*)|(%-?%d+)|(%d+)|(.*)$')
    now, seen = now or now_ms(), tonumber(seen)
    local silent = seen and now - math.abs(seen)
    if owner ~= asker and seen and silent <= ${QUEUE_MS} and (seen < 0 or silent > limit) then
      if seen > 0 then note(owner, channel, -seen, ttl, metadata) end
      index = index + 1
    else
      local is_there = owner == asker or seen and silent <= limit and reaches(channel, owner .. '|0')
      leave(owner)
      if is_there then return owner, tonumber(ttl), metadata end
    end
  end
end

-- Gives the key to a waiter for a short time; it confirms by asking.
local function hand_over(owner, ttl, metadata, atMost)
  if owner then grant(owner, metadata, math.min(ttl, atMost)) end
  return owner
end
`;

/**
 * KEYS: lease. ARGV: owner, ttl in ms, `channel|metadata`, where the channel wakes the waiter ('' = do not queue).
 * Returns {1, token} or {0, ms left of the lease, lease, index in the queue or -1}.
 */
const ACQUIRE = `
name_keys()
local owner, ttl = ARGV[1], tonumber(ARGV[2])
local channel, metadata = string.match(ARGV[3], '^([^|]*)|(.*)$')
local lease = redis.call('GET', LEASE)
if not lease then
  local first, its_ttl, its_metadata = next_waiter(owner, ${SILENT_MS})
  if not first or first == owner then return {1, grant(owner, metadata, ttl)} end
  hand_over(first, its_ttl, its_metadata, ${NEXT_GRANT_MS})
  lease = redis.call('GET', LEASE)
end
local holder, token = string.match(lease, '^([^|]*)|([^|]*)|')
if holder == owner then
  redis.call('PEXPIRE', LEASE, ttl)
  return {1, token}
end
local index = -1
if channel ~= '' then
  index = redis.call('LPOS', QUEUE, owner) or redis.call('RPUSH', QUEUE, owner) - 1
  note(owner, channel, now_ms(), ARGV[2], metadata)
  redis.call('PEXPIRE', WAITERS, ${QUEUE_MS})
end
-- Also where there is no queue: a server that may not write must not tell who has the key either.
redis.call('PEXPIRE', QUEUE, ${QUEUE_MS})
return {0, redis.call('PTTL', LEASE), lease, index}
`;

/**
 * KEYS: lease. ARGV: owner. Passes the key on, or leaves the queue. Passes on a key, too, that somebody has deleted.
 * Returns 1 if the key was the owner's, else 0.
 */
const RELEASE = `
name_keys()
local owner = ARGV[1]
local lease = redis.call('GET', LEASE)
local ours = lease and string.match(lease, '^[^|]*') == owner
if not ours then leave(owner) end
if lease and not ours then return 0 end
local first, ttl, metadata = next_waiter(nil, ${QUEUE_MS})
if not hand_over(first, ttl, metadata, ${GRANT_MS}) and lease then redis.call('DEL', LEASE) end
return ours and 1 or 0
`;

/**
 * KEYS: lease. ARGV: how many waiters. Changes nothing. Returns {lease, ms left of it, line}, a line of `owner|waiter`
 * as `waiters` has them.
 */
const LOOK = `
name_keys()
local line = {}
for index = 0, ARGV[1] - 1 do
  local owner = redis.call('LINDEX', QUEUE, index)
  if not owner then break end
  line[index + 1] = owner .. '|' .. (redis.call('HGET', WAITERS, owner) or '')
end
return {redis.call('GET', LEASE), redis.call('PTTL', LEASE), line}
`;

export type QueueScripts = ReturnType<typeof queueScripts>;

/** For one server, or for a cluster. */
export function queueScripts({ sharded }: { readonly sharded: boolean }) {
  const shape = { keys: sharded ? 4 : 1, mostInACommand: 50 };
  const functions = `${sharded ? SHARDED_PUBLISH : PUBLISH}${QUEUE_FUNCTIONS}`;
  return {
    acquire: redisScript({ ...shape, args: 3 }, ACQUIRE, functions),
    release: redisScript({ ...shape, args: 1 }, RELEASE, functions),
    look: redisScript({ ...shape, args: 1, mostInACommand: 1 }, LOOK, functions),
  };
}
