/** A waiter asks more often than that, also when nobody wakes it. The queue passes over those that do not. */
export const SILENT_MS = 4_800;
/** How long a queue, and an entry in it, outlive the last question of a waiter. */
export const QUEUE_MS = 120_000;
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
 * KEYS: lease, and on a cluster queue, fence, waiters and, where it matters, shares, as `queueKeysOf` has them. A single
 * server puts their names together itself.
 *
 * lease = `owner|token|metadata`, or `|taken|end|` while several have the key: the permits that are taken, and a time
 * before which none of them ends. shares = hash by owner, `end|token|metadata`. queue = list of owners, first come
 * first. waiters = hash by owner, `channel|seen|ttl|metadata`: seen is the time in ms of the waiter's last question, and
 * negative once it was passed over. fence = the last token. All times are the server's, in ms. Messages are `owner|0`:
 * ask again, the key is yours.
 */
const STATE = `
local LEASE, QUEUE, FENCE, WAITERS, SHARES
local lease
-- Whether several have the key, and the call does not name the shares: they may be on the way to another node.
local function read_lease()
  LEASE = KEYS[1]
  QUEUE, FENCE, WAITERS, SHARES = LEASE .. ':q', LEASE .. ':f', LEASE .. ':w', LEASE .. ':s'
  lease = redis.call('GET', LEASE)
  return #KEYS == 4 and lease and string.sub(lease, 1, 1) == '|'
end

local function now_ms()
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end

-- A token is greater than the one before, and not less than the server's clock in microseconds, so that it grows even
-- when the fence is lost. Both are below 2^53, where doubles are exact.
local function next_token(ttl)
  local now = redis.call('TIME')
  local last = tonumber(redis.call('GET', FENCE)) or 0
  local token = string.format('%.0f', math.max(last + 1, now[1] * 1000000 + now[2]))
  redis.call('SET', FENCE, token, 'PX', ttl + ${FENCE_MS})
  return token
end
`;

/** Several who have a key. The end of an owner's name says how much of it: see `claimOf`. */
const SHARING = `
-- The permits that an owner wants, and of how many. Nothing: it wants all of the key.
local function claim_of(owner)
  if string.sub(owner, -2) == '~s' then return 1, 2147483647 end
  local permits, of = string.match(owner, '~([1-9]%d?%d?%d?%d?)%-([1-9]%d?%d?%d?%d?)$')
  if permits then return tonumber(permits), tonumber(of) end
end

local function taken_in(value)
  return value and tonumber(string.match(value, '^|(%d+)|') or nil)
end

-- Who has all of the key lets nobody in.
local function fits(owner)
  if not lease then return true end
  local permits, of = claim_of(owner)
  local taken = permits and taken_in(lease)
  return taken and taken + permits <= of or false
end

-- Milliseconds until the lease, or the first share, may end, and the lease of one who has the key.
local function left_and_shown()
  local first_end = string.match(lease, '^|%d+|(%d+)|')
  if not first_end then return redis.call('PTTL', LEASE), lease end
  local some = redis.call('HSCAN', SHARES, 0, 'COUNT', 1)[2]
  local shown = some[2] and some[1] .. string.match(some[2], '^%d+(|.*)$') or lease
  return math.max(first_end - now_ms(), 0), shown
end

local function write_taken(taken, first_end, left)
  lease = string.format('|%d|%.0f|', taken, first_end)
  redis.call('SET', LEASE, lease, 'PX', math.max(left, 1))
  redis.call('PEXPIRE', SHARES, math.max(left, 1))
end

local function write_share(owner, token, metadata, ends)
  redis.call('HSET', SHARES, owner, string.format('%.0f|%s|%s', ends, token, metadata))
end

-- Without a lease that says so, nobody has a share.
local function add_share(owner, permits, token, metadata, ttl)
  local taken, first_end, ends = taken_in(lease), nil, now_ms() + ttl
  if not taken then redis.call('DEL', SHARES) end
  write_share(owner, token, metadata, ends)
  if not taken then return write_taken(permits, ends, ttl) end
  first_end = tonumber(string.match(lease, '^|%d+|(%d+)|'))
  write_taken(taken + permits, math.min(first_end, ends), math.max(redis.call('PTTL', LEASE), ttl))
end

-- The first end that the lease knows may be too early after that, never too late: TTLs that shrink are written at once.
local function renew_share(owner, token, metadata, ttl)
  local taken, first_end = string.match(lease, '^|(%d+)|(%d+)|')
  local left, ends = redis.call('PTTL', LEASE), now_ms() + ttl
  write_share(owner, token, metadata, ends)
  if ttl > left or ends < tonumber(first_end) then
    write_taken(taken, math.min(first_end, ends), math.max(left, ttl))
  end
end

-- An owner's token and metadata, if it has a share.
local function share_of(owner)
  local share = taken_in(lease) and redis.call('HGET', SHARES, owner)
  if not share then return nil end
  local ends, token, metadata = string.match(share, '^(%d+)|(%d+)|(.*)$')
  if tonumber(ends) > now_ms() then return token, metadata end
end

local function drop_share(owner)
  redis.call('HDEL', SHARES, owner)
  local taken, first_end = string.match(lease, '^|(%d+)|(%d+)|')
  taken = taken - claim_of(owner)
  if taken > 0 then write_taken(taken, first_end, redis.call('PTTL', LEASE)) else lease = false end
end

-- Forgets the shares that have ended, as soon as the first of them may have.
local function sweep()
  local now = now_ms()
  if now < tonumber(string.match(lease, '^|%d+|(%d+)|')) then return end
  local shares, taken, first_end, last_end = redis.call('HGETALL', SHARES), 0, math.huge, 0
  for i = 1, #shares, 2 do
    local ends = tonumber(string.match(shares[i + 1], '^%d+'))
    if ends <= now then
      redis.call('HDEL', SHARES, shares[i])
    else
      taken = taken + claim_of(shares[i])
      first_end, last_end = math.min(first_end, ends), math.max(last_end, ends)
    end
  end
  if taken > 0 then return write_taken(taken, first_end, last_end - now) end
  redis.call('DEL', LEASE)
  lease = false
end
`;

/** Those who wait, and how the key comes to them. */
const QUEUE = `
local function grant(owner, metadata, ttl)
  local token = next_token(ttl)
  local permits = claim_of(owner)
  if permits then
    add_share(owner, permits, token, metadata, ttl)
  else
    lease = owner .. '|' .. token .. '|' .. metadata
    redis.call('SET', LEASE, lease, 'PX', ttl)
  end
  return token
end

local function note(owner, channel, seen, ttl, metadata)
  redis.call('HSET', WAITERS, owner, channel .. '|' .. string.format('%.0f', seen) .. '|' .. ttl .. '|' .. metadata)
end

local function leave(owner)
  redis.call('LREM', QUEUE, 1, owner)
  redis.call('HDEL', WAITERS, owner)
end

-- Takes the first waiter that is there out of the queue, and tells it so unless it is the one who asks: nil where there
-- is none, false where it does not fit. Waiters that do not listen any more leave. Waiters that were silent for longer
-- than the limit keep their entries, and are passed over.
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
    elseif (owner == asker or seen and silent <= limit) and not fits(owner) then
      return false
    else
      local is_there = owner == asker or seen and silent <= limit and reaches(channel, owner .. '|0')
      leave(owner)
      if is_there then return owner, tonumber(ttl), metadata end
    end
  end
end

-- Gives the key to those at the head of the queue who fit, each for a short time: they confirm by asking. Whether it is
-- the asker's turn then.
local function serve(asker, limit, at_most)
  while true do
    local owner, ttl, metadata = next_waiter(asker, limit)
    if owner == false then return false end
    if owner == nil or owner == asker then return asker and fits(asker) end
    grant(owner, metadata, math.min(ttl, at_most))
    if not claim_of(owner) then return false end
  end
end
`;

/** For one server, or for a cluster. They follow `redisScript`'s own. */
export function queueFunctions({ sharded }: { readonly sharded: boolean }): string {
  return `${sharded ? SHARDED_PUBLISH : PUBLISH}${STATE}${SHARING}${QUEUE}`;
}
