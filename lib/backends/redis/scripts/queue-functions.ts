import { CLOSED_KEY_FUNCTIONS } from './closed-keys.js';
import { FENCE_TTL_MS, NEXT_TOKEN_FUNCTION } from './next-token.js';
import { SHARE_FUNCTIONS } from './share-functions.js';

/** Silence after which the queue skips a waiter. A live waiter retries more often, even if it is not woken. */
export const MAX_WAITER_SILENCE_MS = 4_800;
/** TTL of a queue and of its entries after the last call of a waiter. */
export const QUEUE_TTL_MS = 120_000;
/**
 * Lua function that publishes a message if a process listens, and returns whether one does. The reply of PUBLISH would
 * also count subscribers to a pattern, such as monitoring tools. Where the user may not use NUMSUB or PUBLISH, a process
 * is assumed to listen: it then finds the grant when it asks again.
 */
const PUBLISH_FUNCTION = `
local function publish(channel, message)
  local listeners = redis.pcall('PUBSUB', 'NUMSUB', channel)
  if listeners[2] == 0 then return false end
  redis.pcall('PUBLISH', channel, message)
  return true
end
`;

/**
 * Lua function that publishes a message, and returns whether a process listens. Returns false if the channel's slot has
 * moved to another node: the listeners then learn of the move from the former node.
 */
const SHARDED_PUBLISH_FUNCTION = `
local function publish(channel, message)
  local receivers = redis.pcall('SPUBLISH', channel, message)
  return type(receivers) == 'number' and receivers > 0
end
`;

/**
 * Lua functions that read and name the keys of a lock. They derive all names from that of the lease. Calls on a cluster
 * pass the other names as well, in the order of `queueKeysOf`.
 *
 * lease = `owner|token|metadata`, or `|taken|first_end|` while shares are held. `taken` is the number of permits taken,
 * and no share ends before `first_end`.
 * shares = hash by owner, `end|token|metadata`.
 * queue = list of owners, the oldest first.
 * waiters = hash by owner, `channel|seen|ttl|metadata`. `seen` is the time of the waiter's last call, negative once the
 * queue has skipped the waiter. The field '' is the end of the lease, as a waiter last saw it. While the key is closed,
 * this field is minus the time until which the key stays closed.
 * fence = the last token.
 *
 * All times are in ms by the server's clock. The message `owner|0` tells a waiter to retry at once, because the waiter
 * has been granted the key.
 */
const STATE_FUNCTIONS = `
local LEASE, QUEUE, FENCE, WAITERS, SHARES
local lease
local function read_lease(lease_key)
  LEASE = lease_key
  QUEUE, FENCE, WAITERS, SHARES = LEASE .. ':q', LEASE .. ':f', LEASE .. ':w', LEASE .. ':s'
  lease = redis.call('GET', LEASE)
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

${NEXT_TOKEN_FUNCTION}
`;

const GRANT_FUNCTIONS = `
local function grant(owner, metadata, ttl)
  local token = next_token(FENCE, ttl + ${FENCE_TTL_MS})
  local permits = claim_of(owner)
  if permits then
    add_share(owner, permits, token, metadata, ttl)
  else
    lease = owner .. '|' .. token .. '|' .. metadata
    redis.call('SET', LEASE, lease, 'PX', ttl)
  end
  return token
end

local function waiter_entry(channel, seen, ttl, metadata)
  return channel .. '|' .. string.format('%.0f', seen) .. '|' .. ttl .. '|' .. metadata
end

-- Returns whether the owner was in the queue.
local function remove_waiter(owner)
  local was_queued = redis.call('LREM', QUEUE, 1, owner) > 0
  redis.call('HDEL', WAITERS, owner)
  if was_queued and redis.call('EXISTS', QUEUE) == 0 then redis.call('DEL', WAITERS) end
  return was_queued
end

-- Removes the first waiter that listens from the queue, returns it, and wakes it unless it is the caller. Returns nil
-- when there is none, and false when the key has no room for it. Removes waiters that no longer listen. Skips waiters
-- that were silent for longer than max_silence: they keep their entries.
local function take_next_waiter(caller, max_silence)
  local index, now = 0, nil
  while true do
    local owner = redis.call('LINDEX', QUEUE, index)
    if not owner then return nil end
    local entry = redis.call('HGET', WAITERS, owner) or ''
    local channel, seen, ttl, metadata = string.match(entry, '^([^|]*)|(%-?%d+)|(%d+)|(.*)$')
    now, seen = now or now_ms(), tonumber(seen)
    local silence = seen and now - math.abs(seen)
    local is_caller, is_recent = owner == caller, seen and silence <= max_silence
    if not is_caller and seen and silence <= ${QUEUE_TTL_MS} and (seen < 0 or not is_recent) then
      if seen > 0 then redis.call('HSET', WAITERS, owner, waiter_entry(channel, -seen, ttl, metadata)) end
      index = index + 1
    elseif (is_caller or is_recent) and not has_room_for(owner) then
      return false
    else
      local is_listening = is_caller or is_recent and publish(channel, owner .. '|0')
      remove_waiter(owner)
      if is_listening then return owner, tonumber(ttl), metadata end
    end
  end
end

-- Grants the key to waiters at the head of the queue, while it has room for them, up to the caller. A grant is short: the
-- waiter confirms it by its next call. Returns whether the key can be granted to the caller.
local function grant_to_waiters(caller, max_silence, max_ttl)
  while true do
    local owner, ttl, metadata = take_next_waiter(caller, max_silence)
    if owner == false then return false end
    if owner == nil or owner == caller then return caller and has_room_for(caller) end
    grant(owner, metadata, math.min(ttl, max_ttl))
    if not claim_of(owner) then return false end
  end
end
`;

interface QueueFunctionSettings {
  readonly isSharded: boolean;
  /** Whether calls must name their keys, but do not name that of the shares. */
  readonly lacksSharesKey: boolean;
}

export function queueFunctionsSource({ isSharded, lacksSharesKey }: QueueFunctionSettings): string {
  const needsSharesKeyFunction = `
-- Returns whether the call must name the key of the shares, which may be migrating to another node.
local function needs_shares_key()
  return ${lacksSharesKey} and lease and string.sub(lease, 1, 1) == '|'
end
`;
  const publish = isSharded ? SHARDED_PUBLISH_FUNCTION : PUBLISH_FUNCTION;
  return publish + STATE_FUNCTIONS + CLOSED_KEY_FUNCTIONS + needsSharesKeyFunction + SHARE_FUNCTIONS + GRANT_FUNCTIONS;
}
