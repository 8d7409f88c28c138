import { createScript } from './redis-script.js';

/**
 * Runs `SET NX PX`, and reads the clock in the same step. `ttl` is in ms.
 * Returns the server's time in µs for a grant, else {that time, present lease, ms left of it}. The time is below 2^53,
 * where doubles are exact.
 */
export const SET_IF_FREE = createScript(
  { keys: ['lease_key'], args: ['new_lease', 'ttl'], maxCallsPerCommand: 50 },
  `
local is_set, time = redis.call('SET', lease_key, new_lease, 'NX', 'PX', ttl), redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if is_set then return now end
return {now, redis.call('GET', lease_key), redis.call('PTTL', lease_key)}
`,
);

/**
 * Deletes the owner's lease. Returns 1 if the lease was the owner's, else 0. If another program has written the value,
 * the whole value counts as the owner's name, so that an operator can evict that owner.
 */
export const COMPARE_AND_DELETE = createScript(
  { keys: ['lease_key'], args: ['owner'], maxCallsPerCommand: 50 },
  `
local lease = redis.call('GET', lease_key)
if not lease or lease ~= owner and string.sub(lease, 1, #owner + 1) ~= owner .. '|' then return 0 end
return redis.call('DEL', lease_key)
`,
);

/**
 * Renews the owner's lease. Returns 1 if the lease is still the owner's, else 0. `ttl` is in ms. `pcall` keeps the
 * script from failing when another program's value is no string.
 */
export const RENEW = createScript(
  { keys: ['lease_key'], args: ['owner', 'ttl'], maxCallsPerCommand: 250, isTracked: true },
  `
local lease = redis.pcall('GET', lease_key)
local is_owners = type(lease) == 'string' and string.sub(lease, 1, #owner + 1) == owner .. '|'
if not is_owners then return 0 end
local is_renewed = redis.call('PEXPIRE', lease_key, ttl)
-- PEXPIRE has ended the tracking of the key. This read starts it again.
redis.call('PTTL', lease_key)
return is_renewed
`,
);

/**
 * Gives the lease of `former_owner` to `owner`, and renews it if `owner` has it already. Returns 1 if `owner` has the
 * lease then, else 0. `value` is the lease after the owner's name, `ttl` is in ms.
 */
export const ADOPT = createScript(
  { keys: ['lease_key'], args: ['former_owner', 'owner', 'value', 'ttl'], maxCallsPerCommand: 50 },
  `
local lease = redis.pcall('GET', lease_key)
local present_owner = type(lease) == 'string' and string.match(lease, '^([^|]*)|')
if present_owner ~= former_owner and present_owner ~= owner then return 0 end
redis.call('SET', lease_key, owner .. '|' .. value, 'PX', ttl)
return 1
`,
);
