import { redisScript } from '../redis/scripts/redis-script.js';

/**
 * For so long, and twice the skew, a token is remembered after its lease; later, the node's clock alone keeps tokens
 * growing. Redis keeps the end of that time as an hour of its own clock: a clock that is set back keeps the token for
 * as much longer. A server that counts otherwise may set its clock back by this much.
 */
const FENCE_MS = 3_600_000;

/** How long a node refuses the lease of an evicted owner that it does not have: far longer than a renewal is under way. */
const EVICTION_MS = 3_600_000;

/**
 * The vote of one node, for VOTE and JOIN. `shown` is the token that the lease shows to those who look: the proposal, or
 * that of an acquisition before.
 *
 * lease = `owner|token|attempt|metadata`. fence = the last token granted for the key. since = from when on this node
 * remembers, by its own clock; it is missing on a node that has lost everything. Clocks and tokens are in µs, below
 * 2^53, where doubles are exact. A vote of an earlier attempt than the lease's is late: it counts as somebody else's.
 *
 * Returns {'granted'}, or {'held', ms left of the lease, lease}, or {'refused', floor, ceiling, clock}: the token has
 * to be greater than floor and at most ceiling, or {'young', seconds since the node started}.
 */
const VOTE_FUNCTION = `
local function vote(shown)
  local owner, attempt, proposal, skew = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[6])
  local lease = redis.call('GET', KEYS[1])
  if lease then
    local holder, token, latest = string.match(lease, '^([^|]*)|(%d+)|(%d+)|')
    if holder ~= owner or tonumber(latest) > tonumber(attempt) then return {'held', redis.call('PTTL', KEYS[1]), lease} end
    if token == shown and latest == attempt then
      redis.call('PEXPIRE', KEYS[1], ARGV[4])
      return {'granted'}
    end
  end

  if ARGV[7] ~= '0' then
    local uptime = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
    if uptime * 1000 < tonumber(ARGV[7]) then return {'young', uptime} end
  end

  local time = redis.call('TIME')
  local clock = time[1] * 1000000 + time[2]
  local since = tonumber(redis.call('GET', KEYS[3]))
  if not since then
    since = clock
    redis.call('SET', KEYS[3], string.format('%.0f', since))
  end
  -- No token was ever granted here that was further ahead of the clock than the skew. One that is greater than the clock
  -- was at 'since', plus the skew, is greater than every token that was forgotten; one that is greater than the clock
  -- less the skew is greater than every token whose fence has run out.
  local fence = tonumber(redis.call('GET', KEYS[2])) or 0
  local floor = math.max(fence, since + skew, clock - skew)
  local ceiling = clock + skew
  -- The clock was set back. Small steps, so that the key is not closed until the clock is there again.
  if fence > ceiling then ceiling = fence + 1 end
  if proposal <= floor or proposal > ceiling then
    return {'refused', string.format('%.0f', floor), string.format('%.0f', ceiling), string.format('%.0f', clock)}
  end

  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4] + ${FENCE_MS} + math.ceil(skew / 500))
  redis.call('SET', KEYS[1], owner .. '|' .. shown .. '|' .. attempt .. '|' .. ARGV[5], 'PX', ARGV[4])
  return {'granted'}
end
`;

/**
 * One node's vote on an acquisition. KEYS: lease, fence, since. ARGV: owner, number of the owner's attempt, proposed
 * token, ttl in ms, metadata, largest skew in µs, restart quarantine in ms. Returns what `VOTE_FUNCTION` does.
 */
export const VOTE = redisScript({ keys: 3, args: 7, maxCallsPerCommand: 50 }, 'return vote(ARGV[3])', VOTE_FUNCTION);

/**
 * Takes the key for an owner to whom a quorum of the other nodes has just renewed it. KEYS: those of VOTE, evicted. ARGV:
 * those of VOTE, token of the owner's acquisition. Returns what VOTE does, or {'evicted'}.
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
 * KEYS: lease. ARGV: owner, number of an attempt of the owner's. Returns 1 if the lease was that attempt's, or an
 * earlier one's, and the key is now free, else 0. It may come at any time: what a later attempt has won stays.
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
 * KEYS: lease, evicted. ARGV: owner. Frees the lease of the owner, whose JOIN is refused from now on. Returns 1 if the
 * lease was the owner's, else 0. A server that is out of memory notes no eviction, and takes no JOIN.
 */
export const EVICT = redisScript(
  { keys: 2, args: 1, maxCallsPerCommand: 50 },
  `
local lease = redis.call('GET', KEYS[1])
local freed = 0
if string.match(lease or '', '^([^|]*)|') == ARGV[1] then freed = redis.call('DEL', KEYS[1]) end
redis.pcall('SET', KEYS[2], ARGV[1], 'PX', ${EVICTION_MS})
return freed
`,
);
