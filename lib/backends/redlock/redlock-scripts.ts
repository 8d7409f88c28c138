import { redisScript } from '../redis/scripts/redis-script.js';

/**
 * Time for which a token is kept after its lease, besides twice the skew. Later the node's clock alone makes tokens grow.
 * Redis measures this time by the same clock: one that is set back keeps the token for longer. On other servers a clock
 * may be set back by this time, and tokens still grow.
 */
const FENCE_TTL_MS = 3_600_000;

/** Time for which a node refuses a JOIN of an evicted owner. No renewal is under way for nearly so long. */
const EVICTION_TTL_MS = 3_600_000;

/**
 * The vote of one node, for VOTE and JOIN. `shown_token` is the token that the lease shows: the proposal, or the token of
 * an earlier acquisition.
 *
 * lease = `owner|token|attempt|metadata`.
 * fence = the last token granted for the key.
 * since = the time by the node's clock since which it has kept its data; missing on a node that has lost all data.
 *
 * Clocks and tokens are in µs, below 2^53, where doubles are exact. The lease of a later attempt of the same owner counts
 * as another owner's.
 *
 * Returns {'granted'}, {'held', ms left of the lease, lease}, {'refused', floor, ceiling, clock} or {'young', seconds since
 * the node started}. A token must be greater than the floor and at most the ceiling.
 */
const VOTE_FUNCTION = `
local function vote(shown_token)
  local owner, attempt, proposal, skew = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[6])
  local lease = redis.call('GET', KEYS[1])
  if lease then
    local holder, token, lease_attempt = string.match(lease, '^([^|]*)|(%d+)|(%d+)|')
    local is_others = holder ~= owner or tonumber(lease_attempt) > tonumber(attempt)
    if is_others then return {'held', redis.call('PTTL', KEYS[1]), lease} end
    if token == shown_token and lease_attempt == attempt then
      redis.call('PEXPIRE', KEYS[1], ARGV[4])
      return {'granted'}
    end
  end

  local quarantine_ms = tonumber(ARGV[7])
  if quarantine_ms > 0 then
    local uptime = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
    if uptime * 1000 < quarantine_ms then return {'young', uptime} end
  end

  local time = redis.call('TIME')
  local clock = time[1] * 1000000 + time[2]
  local since = tonumber(redis.call('GET', KEYS[3]))
  if not since then
    since = clock
    redis.call('SET', KEYS[3], string.format('%.0f', since))
  end
  -- No token was granted that was ahead of the clock by more than the skew. Hence a token greater than 'since' plus the
  -- skew is greater than all tokens of lost data. One greater than the clock minus the skew is greater than all tokens
  -- whose fence has expired.
  local fence = tonumber(redis.call('GET', KEYS[2])) or 0
  local floor = math.max(fence, since + skew, clock - skew)
  local ceiling = clock + skew
  -- The clock was set back. One token above the fence is allowed, so that the key is not locked until the clock is there
  -- again.
  if fence > ceiling then ceiling = fence + 1 end
  if proposal <= floor or proposal > ceiling then
    return {'refused', string.format('%.0f', floor), string.format('%.0f', ceiling), string.format('%.0f', clock)}
  end

  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4] + ${FENCE_TTL_MS} + math.ceil(skew / 500))
  redis.call('SET', KEYS[1], owner .. '|' .. shown_token .. '|' .. attempt .. '|' .. ARGV[5], 'PX', ARGV[4])
  return {'granted'}
end
`;

/**
 * One node's vote on an acquisition. KEYS: lease, fence, since. ARGV: owner, number of the owner's attempt, proposed token,
 * ttl in ms, metadata, largest skew in µs, restart quarantine in ms. Returns the result of `VOTE_FUNCTION`.
 */
export const VOTE = redisScript({ keys: 3, args: 7, maxCallsPerCommand: 50 }, 'return vote(ARGV[3])', VOTE_FUNCTION);

/**
 * One node's vote on a lease that a quorum of the other nodes has just renewed. KEYS: those of VOTE, evicted owner. ARGV:
 * those of VOTE, token of the owner's acquisition. Returns the result of VOTE, or {'evicted'}.
 */
export const JOIN = redisScript(
  { keys: 4, args: 8, maxCallsPerCommand: 50 },
  `
if redis.call('GET', KEYS[4]) == ARGV[1] then return {'evicted'} end
return vote(ARGV[8])
`,
  VOTE_FUNCTION,
);

/**
 * KEYS: lease. ARGV: owner, number of an attempt of the owner's. Deletes the lease of that attempt or an earlier one, never
 * that of a later attempt: the call may arrive at any time. Returns 1 if there was such a lease, else 0.
 */
export const TAKE_BACK = redisScript(
  { keys: 1, args: 2, maxCallsPerCommand: 50 },
  `
local lease = redis.call('GET', KEYS[1])
local holder, attempt = string.match(lease or '', '^([^|]*)|%d+|(%d+)|')
if holder ~= ARGV[1] or tonumber(attempt) > tonumber(ARGV[2]) then return 0 end
return redis.call('DEL', KEYS[1])
`,
);

/**
 * KEYS: lease, evicted owner. ARGV: owner. Deletes the lease of the owner, whose JOIN is refused from now on. Returns 1 if
 * the lease was the owner's, else 0. A server that is out of
 * memory refuses SET, and JOIN as well: pcall keeps the script from failing.
 */
export const EVICT = redisScript(
  { keys: 2, args: 1, maxCallsPerCommand: 50 },
  `
local lease = redis.call('GET', KEYS[1])
local deleted = 0
if string.match(lease or '', '^([^|]*)|') == ARGV[1] then deleted = redis.call('DEL', KEYS[1]) end
redis.pcall('SET', KEYS[2], ARGV[1], 'PX', ${EVICTION_TTL_MS})
return deleted
`,
);
