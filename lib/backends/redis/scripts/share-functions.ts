/** Lua function that reads an owner's claim from the end of the owner's name. */
export const CLAIM_FUNCTION = `
-- Returns the permits that an owner takes, and the limit for all holders. Returns nil for an exclusive owner.
local function claim_of(owner)
  if string.sub(owner, -2) == '~s' then return 1, 2147483647 end
  local permits, limit = string.match(owner, '~([1-9]%d?%d?%d?%d?)%-([1-9]%d?%d?%d?%d?)$')
  if permits then return tonumber(permits), tonumber(limit) end
end
`;

/** Lua functions for a key with several holders. A script must have `STATE_FUNCTIONS` before them. */
export const SHARE_FUNCTIONS = `
${CLAIM_FUNCTION}
-- Returns the permits taken by all shares. Returns nil for an exclusive lease and for none.
local function taken_permits(value)
  return value and tonumber(string.match(value, '^|(%d+)|') or nil)
end

local function has_room_for(owner)
  if not lease then return true end
  local permits, limit = claim_of(owner)
  local taken = permits and taken_permits(lease)
  return taken and taken + permits <= limit or false
end

-- Returns the ms until the lease or the first share may end, and the lease of one holder.
local function ms_left_and_holder()
  local first_end = string.match(lease, '^|%d+|(%d+)|')
  if not first_end then return redis.call('PTTL', LEASE), lease end
  local share = redis.call('HSCAN', SHARES, 0, 'COUNT', 1)[2]
  local holder = share[2] and share[1] .. string.match(share[2], '^%d+(|.*)$') or lease
  return math.max(first_end - now_ms(), 0), holder
end

local function write_shared_lease(taken, first_end, ttl)
  lease = string.format('|%d|%.0f|', taken, first_end)
  redis.call('SET', LEASE, lease, 'PX', math.max(ttl, 1))
  redis.call('PEXPIRE', SHARES, math.max(ttl, 1))
end

local function write_share(owner, token, metadata, ends_at)
  redis.call('HSET', SHARES, owner, string.format('%.0f|%s|%s', ends_at, token, metadata))
end

-- Adds a share. Shares without a shared lease are left over from an earlier one, and are deleted.
local function add_share(owner, permits, token, metadata, ttl)
  local taken, first_end, ends_at = taken_permits(lease), nil, now_ms() + ttl
  if not taken then redis.call('DEL', SHARES) end
  write_share(owner, token, metadata, ends_at)
  if not taken then return write_shared_lease(permits, ends_at, ttl) end
  first_end = tonumber(string.match(lease, '^|%d+|(%d+)|'))
  write_shared_lease(taken + permits, math.min(first_end, ends_at), math.max(redis.call('PTTL', LEASE), ttl))
end

-- Renews a share. The first end in the lease may then be too early, but never too late: a shorter TTL is written at once.
-- A full server refuses HSET and SET as the first write of a script, but no PEXPIRE.
local function renew_share(owner, token, metadata, ttl)
  local taken, first_end = string.match(lease, '^|(%d+)|(%d+)|')
  local left, ends_at = redis.call('PTTL', LEASE), now_ms() + ttl
  redis.call('PEXPIRE', SHARES, math.max(left, ttl, 1))
  write_share(owner, token, metadata, ends_at)
  if ttl > left or ends_at < tonumber(first_end) then
    write_shared_lease(taken, math.min(first_end, ends_at), math.max(left, ttl))
  end
end

-- Returns token and metadata of the owner's share, unless it has none or it has ended.
local function share_of(owner)
  local share = taken_permits(lease) and redis.call('HGET', SHARES, owner)
  if not share then return nil end
  local ends_at, token, metadata = string.match(share, '^(%d+)|(%d+)|(.*)$')
  if tonumber(ends_at) > now_ms() then return token, metadata end
end

-- Removes a share. After the last share the lease is false, and the caller must delete its key.
local function remove_share(owner)
  redis.call('HDEL', SHARES, owner)
  local taken, first_end = string.match(lease, '^|(%d+)|(%d+)|')
  taken = taken - claim_of(owner)
  if taken > 0 then write_shared_lease(taken, first_end, redis.call('PTTL', LEASE)) else lease = false end
end

-- Removes the shares that have ended, once the first of them may have ended.
local function remove_ended_shares()
  local now = now_ms()
  if now < tonumber(string.match(lease, '^|%d+|(%d+)|')) then return end
  local shares, taken, first_end, last_end = redis.call('HGETALL', SHARES), 0, math.huge, 0
  for i = 1, #shares, 2 do
    local ends_at = tonumber(string.match(shares[i + 1], '^%d+'))
    if ends_at <= now then
      redis.call('HDEL', SHARES, shares[i])
    else
      taken = taken + claim_of(shares[i])
      first_end, last_end = math.min(first_end, ends_at), math.max(last_end, ends_at)
    end
  end
  if taken > 0 then return write_shared_lease(taken, first_end, last_end - now) end
  redis.call('DEL', LEASE)
  lease = false
end
`;
