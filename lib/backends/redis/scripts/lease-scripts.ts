import { redisScript } from './redis-script.js';

/**
 * KEYS: lease. ARGV: new lease, ttl in ms. Runs `SET NX PX`, and reads the clock in the same step.
 * Returns {1, server's TIME} or {0, server's TIME, present lease, ms left of it}.
 */
export const SET_IF_FREE = redisScript(
  { keys: 1, args: 2, maxCallsPerCommand: 50 },
  `
local is_set, time = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]), redis.call('TIME')
if is_set then return {1, time} end
return {0, time, redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}
`,
);

/**
 * KEYS: lease. ARGV: owner. Deletes the lease of the owner. Returns 1 if the lease was the owner's, else 0. The whole value
 * of another program counts as its owner: an operator who has looked at the key can evict it.
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
 * KEYS: lease. ARGV: owner, ttl in ms. Renews the lease of the owner. Returns 1 if the lease is still the owner's, else 0.
 * A value
 * of another program that is no string belongs to no owner: pcall keeps GET from failing.
 */
export const RENEW = redisScript(
  { keys: 1, args: 2, maxCallsPerCommand: 250 },
  `
local lease = redis.pcall('GET', KEYS[1])
local is_owners = type(lease) == 'string' and string.sub(lease, 1, #ARGV[1] + 1) == ARGV[1] .. '|'
return is_owners and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0
`,
);
