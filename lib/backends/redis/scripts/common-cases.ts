import { FENCE_TTL_MS, NEXT_TOKEN_FUNCTION } from './next-token.js';
import { CLAIM_FUNCTION } from './share-functions.js';

/** Minimum number of digits of a TTL, in ms, of 10,000 s or more. The general case handles these TTLs. */
const LONG_TTL_DIGITS = 8;
/**
 * TTL of the fence after a grant for less than 100 s, or than 10,000 s. It is a text, because Redis takes a microsecond
 * to convert a number.
 */
const FENCE_TTL = `#ttl < 6 and '${100_000 + FENCE_TTL_MS}' or '${10_000_000 + FENCE_TTL_MS}'`;

/** Acquires a key that has neither a lease nor a queue. */
const ACQUIRE_FREE_KEY = `
if #ttl >= ${LONG_TTL_DIGITS} or redis.call('EXISTS', lease_key, lease_key .. ':q') > 0 then return nil end
${NEXT_TOKEN_FUNCTION}
local token = next_token(lease_key .. ':f', ${FENCE_TTL})
redis.call('SET', lease_key, owner .. '|' .. token .. string.match(waiter, '|.*'), 'PX', ttl)
return token
`;

/**
 * Adds a share, as `add_share` does, if no exclusive owner holds the key and nobody waits. In this state the Redis keys
 * of lease and shares both exist, or neither does, and there is no queue. Where calls name all their keys, an exclusive
 * owner may call this as well (see `NEEDS_SHARES_KEY`): the general case answers that call.
 */
const ACQUIRE_UNQUEUED_SHARE = `
local shares_key = lease_key .. ':s'
local present = redis.call('EXISTS', lease_key, lease_key .. ':q', shares_key)
if present ~= 0 and present ~= 2 or #ttl >= ${LONG_TTL_DIGITS} then return nil end
${CLAIM_FUNCTION}
${NEXT_TOKEN_FUNCTION}
local permits, limit = claim_of(owner)
if not permits then return nil end
local taken, first_end = 0, nil
if present == 2 then
  taken, first_end = string.match(redis.call('GET', lease_key) or '', '^|(%d+)|(%d+)|')
  if not taken or taken + permits > limit or redis.call('HGET', shares_key, owner) then return nil end
end
local token, time = next_token(lease_key .. ':f', ${FENCE_TTL})
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if first_end and now >= tonumber(first_end) then return nil end
local ends_at = string.format('%.0f', now + ttl)
redis.call('HSET', shares_key, owner, ends_at .. '|' .. token .. string.match(waiter, '|.*'))
if first_end then
  ttl = math.max(redis.call('PTTL', lease_key), ttl)
  if first_end > ends_at then first_end = ends_at end
end
redis.call('SET', lease_key, '|' .. taken + permits .. '|' .. (first_end or ends_at) .. '|', 'PX', ttl)
redis.call('PEXPIRE', shares_key, ttl)
return token
`;

const RELEASE_UNQUEUED_KEY = `
local lease = redis.call('GET', lease_key)
if not lease or string.sub(lease, 1, #owner + 1) ~= owner .. '|' then return nil end
if redis.call('EXISTS', lease_key .. ':q') > 0 then return nil end
return redis.call('DEL', lease_key)
`;

const RELEASE_UNQUEUED_SHARE = `
local lease, shares_key = redis.call('GET', lease_key), lease_key .. ':s'
local taken, first_end = string.match(lease or '', '^|(%d+)|(%d+)|')
if not taken or redis.call('EXISTS', lease_key .. ':q') > 0 then return nil end
local share, time = redis.call('HGET', shares_key, owner), redis.call('TIME')
local ends_at = share and tonumber(string.match(share, '^%d+'))
if not ends_at or ends_at <= time[1] * 1000 + math.floor(time[2] / 1000) then return nil end
${CLAIM_FUNCTION}
taken = taken - claim_of(owner)
if taken > 0 then
  redis.call('HDEL', shares_key, owner)
  redis.call('SET', lease_key, '|' .. taken .. '|' .. first_end .. '|', 'KEEPTTL')
else
  redis.call('DEL', lease_key, shares_key)
end
return 1
`;

/** Lua code of the calls for keys without a queue. Returns `nil` where only the general case knows the reply. */
export const COMMON_CASES = {
  exclusive: { acquire: ACQUIRE_FREE_KEY, release: RELEASE_UNQUEUED_KEY },
  shared: { acquire: ACQUIRE_UNQUEUED_SHARE, release: RELEASE_UNQUEUED_SHARE },
};
