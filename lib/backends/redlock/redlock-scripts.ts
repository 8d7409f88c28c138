import { createScript } from '../redis/scripts/redis-script.js';

/**
 * Time for which a token is kept after its lease, in addition to twice the skew. Afterwards the node's clock alone
 * makes tokens grow. Redis measures this time by that clock, and therefore keeps the token for longer if the clock is
 * set back. Other servers may measure the time otherwise: their clock must never be set back by more than this time.
 */
const FENCE_TTL_MS = 3_600_000;

/** Time for which a node refuses a JOIN of an evicted owner. A renewal, which may send a JOIN, never takes so long. */
const EVICTION_TTL_MS = 3_600_000;

const VOTE_KEYS = ['lease_key', 'fence_key', 'since_key'];
/** `ttl` and `quarantine` are in ms, and `max_skew` is in µs. `attempt` is the number of the owner's attempt. */
const VOTE_ARGS = ['owner', 'attempt', 'proposal', 'ttl', 'metadata', 'max_skew', 'quarantine'];

/**
 * Returns the Lua code of one node's vote, for VOTE and JOIN. The lease gets the token `shown_token`: the proposal, or
 * the token of an earlier acquisition.
 *
 * lease = `owner|token|attempt|metadata`.
 * fence = the last token granted for the key.
 * since = the time since which the node has kept its data, by its clock; missing on a node that has lost all data.
 *
 * Clocks and tokens are in µs, below 2^53, where doubles are exact. The lease of a later attempt of the same owner
 * counts as another owner's.
 *
 * The code returns {'granted'}, {'held', ms left of the lease, lease}, {'refused', floor, ceiling, clock} or {'young',
 * seconds since the node started}. A token must be greater than the floor and at most the ceiling.
 */
const voteSource = (shownToken: string): string => `
local shown_token, proposed_token, skew = ${shownToken}, tonumber(proposal), tonumber(max_skew)
local lease = redis.call('GET', lease_key)
if lease then
  local holder, token, lease_attempt = string.match(lease, '^([^|]*)|(%d+)|(%d+)|')
  local is_others = holder ~= owner or tonumber(lease_attempt) > tonumber(attempt)
  if is_others then return {'held', redis.call('PTTL', lease_key), lease} end
  if token == shown_token and lease_attempt == attempt then
    redis.call('PEXPIRE', lease_key, ttl)
    return {'granted'}
  end
end

local quarantine_ms = tonumber(quarantine)
if quarantine_ms > 0 then
  local uptime = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)'))
  if uptime * 1000 < quarantine_ms then return {'young', uptime} end
end

local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local since = tonumber(redis.call('GET', since_key))
if not since then
  since = clock
  redis.call('SET', since_key, string.format('%.0f', since))
end
-- No granted token was ahead of the clock by more than the skew. Hence a token greater than 'since' plus the skew is
-- greater than all tokens of lost data. A token greater than the clock minus the skew is greater than all tokens whose
-- fence has expired.
local fence = tonumber(redis.call('GET', fence_key)) or 0
local floor = math.max(fence, since + skew, clock - skew)
local ceiling = clock + skew
-- If the clock was set back, one token above the fence is allowed: otherwise the key could not be acquired for long.
if fence > ceiling then ceiling = fence + 1 end
if proposed_token <= floor or proposed_token > ceiling then
  return {'refused', string.format('%.0f', floor), string.format('%.0f', ceiling), string.format('%.0f', clock)}
end

redis.call('SET', fence_key, proposal, 'PX', ttl + ${FENCE_TTL_MS} + math.ceil(skew / 500))
redis.call('SET', lease_key, owner .. '|' .. shown_token .. '|' .. attempt .. '|' .. metadata, 'PX', ttl)
return {'granted'}
`;

export const VOTE = createScript({ keys: VOTE_KEYS, args: VOTE_ARGS, maxCallsPerCommand: 50 }, voteSource('proposal'));

/**
 * One node's vote on a lease that a quorum of the other nodes has just renewed. `token` is that of the owner's
 * acquisition. Returns the reply that `voteSource` describes, or {'evicted'}.
 */
export const JOIN = createScript(
  { keys: [...VOTE_KEYS, 'evicted_key'], args: [...VOTE_ARGS, 'token'], maxCallsPerCommand: 50 },
  `
if redis.call('GET', evicted_key) == owner then return {'evicted'} end
${voteSource('token')}
`,
);

/**
 * Deletes the owner's lease of the attempt or of an earlier one, however late the call arrives. Returns 1 if there was
 * such a lease, else 0.
 */
export const TAKE_BACK = createScript(
  { keys: ['lease_key'], args: ['owner', 'attempt'], maxCallsPerCommand: 50 },
  `
local lease = redis.call('GET', lease_key)
local holder, lease_attempt = string.match(lease or '', '^([^|]*)|%d+|(%d+)|')
if holder ~= owner or tonumber(lease_attempt) > tonumber(attempt) then return 0 end
return redis.call('DEL', lease_key)
`,
);

/**
 * Deletes the lease of the owner, whose JOIN is refused from now on. Returns 1 if the lease was the owner's, else 0. A
 * server that is out of memory refuses SET, and JOIN as well: pcall keeps the script from failing.
 */
export const EVICT = createScript(
  { keys: ['lease_key', 'evicted_key'], args: ['owner'], maxCallsPerCommand: 50 },
  `
local lease = redis.call('GET', lease_key)
local deleted = 0
if string.match(lease or '', '^([^|]*)|') == owner then deleted = redis.call('DEL', lease_key) end
redis.pcall('SET', evicted_key, owner, 'PX', ${EVICTION_TTL_MS})
return deleted
`,
);
