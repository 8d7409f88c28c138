import { redisScript } from './redis-script.js';

/**
 * KEYS: lease. ARGV: the new lease, ttl in ms. `SET NX PX`, in a script to read the clock in the same step.
 * Returns {1, the server's clock} or {0, the server's clock, the present lease, ms left of it}.
 */
export const SET_IF_FREE = redisScript(
  { keys: 1, args: 2, maxCallsPerCommand: 50 },
  `
local set, now = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]), redis.call('TIME')
if set then return {1, now} end
return {0, now, redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}
`,
);

/**
 * KEYS: lease. ARGV: owner. Returns 1 if the key was the owner's and is now free, else 0. A value of another program is
 * its owner as a whole: an operator who has looked at the key can evict it.
 */
export const COMPARE_AND_DELETE = redisScript(
  { keys: 1, args: 1, maxCallsPerCommand: 50 },
  `
local lease = redis.call('GET', KEYS[1])
if not lease or lease ~= ARGV[1] and string.sub(lease, 1, #ARGV[1] + 1) ~= ARGV[1] .. '|' then return 0 end
return redis.call('DEL', KEYS[1])
`,
);

/**
 * KEYS: lease. ARGV: owner, ttl in ms. Returns 1 if the lease is still the owner's, for another ttl, else 0. A value
 * that is not a string is nobody's lease: hence pcall.
 */
export const RENEW = redisScript(
  { keys: 1, args: 2, maxCallsPerCommand: 250 },
  `
local lease = redis.pcall('GET', KEYS[1])
local ours = type(lease) == 'string' and string.sub(lease, 1, #ARGV[1] + 1) == ARGV[1] .. '|'
return ours and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0
`,
);
