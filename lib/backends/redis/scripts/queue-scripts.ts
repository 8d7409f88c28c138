import { MAX_WAITER_SILENCE_MS, QUEUE_TTL_MS, queueFunctions } from './queue-functions.js';
import { redisScript } from './redis-script.js';

/** TTL of a grant to a waiter, until its next call confirms it. */
const GRANT_TTL_MS = 5_000;
/** TTL of such a grant after a holder that died, or a waiter that did not confirm. */
const RETRIED_GRANT_TTL_MS = 2_000;

/** Reply on a cluster that the key has shares, and that the call must name their key: see `shared`. */
export const NEEDS_SHARES_KEY = 'shared';

/**
 * KEYS: see `queueFunctions`. ARGV: owner, ttl in ms, `channel|metadata`. The channel wakes the waiter; '' = do not queue.
 * Returns {1, token} or {0, ms until a lease may end, lease of one holder, index in the queue or -1}.
 */
const ACQUIRE = `
read_lease()
if needs_shares_key() then return '${NEEDS_SHARES_KEY}' end
local owner, ttl = ARGV[1], tonumber(ARGV[2])
local channel, metadata = string.match(ARGV[3], '^([^|]*)|(.*)$')
if taken_permits(lease) then
  remove_ended_shares()
  local token, share_metadata = share_of(owner)
  if token then
    renew_share(owner, token, share_metadata, ttl)
    return {1, token}
  end
end
if not lease or taken_permits(lease) then
  if grant_to_waiters(owner, ${MAX_WAITER_SILENCE_MS}, ${RETRIED_GRANT_TTL_MS}) then return {1, grant(owner, metadata, ttl)} end
end
local holder, token = string.match(lease, '^([^|]*)|([^|]*)|')
if holder == owner then
  redis.call('PEXPIRE', LEASE, ttl)
  return {1, token}
end
local index = -1
if channel ~= '' then
  index = redis.call('LPOS', QUEUE, owner) or redis.call('RPUSH', QUEUE, owner) - 1
  write_waiter(owner, channel, now_ms(), ARGV[2], metadata)
  redis.call('PEXPIRE', WAITERS, ${QUEUE_TTL_MS})
end
-- Runs without a queue as well: a server that may not write must not name a holder either.
redis.call('PEXPIRE', QUEUE, ${QUEUE_TTL_MS})
local left, holder_lease = ms_left_and_holder()
return {0, left, holder_lease, index}
`;

/**
 * KEYS: see `queueFunctions`. ARGV: owner. Releases the key, or removes the owner from the queue. Then grants the key to
 * waiters, even if it was free before. Returns 1 if the owner held the key, else 0.
 */
const RELEASE = `
read_lease()
if needs_shares_key() then return '${NEEDS_SHARES_KEY}' end
local owner, lease_before = ARGV[1], lease
local was_held
if claim_of(owner) then
  was_held = share_of(owner)
  if was_held then remove_share(owner) end
else
  was_held = lease and string.match(lease, '^[^|]*') == owner
  if was_held then lease = false end
end
if not was_held then remove_waiter(owner) end
if lease and not taken_permits(lease) then return 0 end
grant_to_waiters(nil, ${QUEUE_TTL_MS}, ${GRANT_TTL_MS})
if lease_before and not lease then redis.call('DEL', LEASE) end
return was_held and 1 or 0
`;

/** KEYS: see `shareKeysOf`. ARGV: owner, ttl in ms. Renews a share. Returns 1 if the owner still has it, else 0. */
const RENEW_SHARE = `
read_lease()
local owner, ttl = ARGV[1], tonumber(ARGV[2])
local token, metadata = share_of(owner)
if not token then return 0 end
renew_share(owner, token, metadata, ttl)
return 1
`;

/** KEYS: see `shareKeysOf`. ARGV: owner. Changes nothing. Returns 1 if the owner has a share of the key, else 0. */
const HAS_SHARE = `
read_lease()
return share_of(ARGV[1]) and 1 or 0
`;

/**
 * KEYS: see `queueFunctions`. ARGV: maximum number of waiters. Changes nothing. Returns {lease, ms left of it, server's time
 * in ms, shares, queue}. `shares` is a list of owner, value, next owner, and so on. `queue` is a list of `owner|waiter`, with
 * the values of `waiters`.
 */
const LOOK = `
read_lease()
if needs_shares_key() then return '${NEEDS_SHARES_KEY}' end
local queue = {}
for index = 0, ARGV[1] - 1 do
  local owner = redis.call('LINDEX', QUEUE, index)
  if not owner then break end
  queue[index + 1] = owner .. '|' .. (redis.call('HGET', WAITERS, owner) or '')
end
local shares = taken_permits(lease) and redis.call('HGETALL', SHARES) or {}
return {lease, redis.call('PTTL', LEASE), string.format('%.0f', now_ms()), shares, queue}
`;

export type QueueScripts = ReturnType<typeof queueScripts>;

export interface QueueScriptSettings {
  /** Whether waiters are told on channels that belong to slots of a cluster. */
  readonly sharded: boolean;
  /** Whether calls name all their keys, as clusters and some managed servers demand. Calls that name one key are faster. */
  readonly declaresKeys: boolean;
}

/**
 * Returns the scripts for one server, or for a cluster. A call on a cluster must name all keys that it uses: a migrating
 * slot then stops the script before it begins. A key that does not exist would also stop it. Therefore the `exclusive`
 * scripts do not name the shares, which most locks never have.
 */
export function queueScripts({ sharded, declaresKeys }: QueueScriptSettings) {
  const functions = queueFunctions({ sharded });
  const scriptsWithKeys = (keys: number) => ({
    acquire: redisScript({ keys, args: 3, maxCallsPerCommand: 50 }, ACQUIRE, functions),
    release: redisScript({ keys, args: 1, maxCallsPerCommand: 50 }, RELEASE, functions),
    look: redisScript({ keys, args: 1, maxCallsPerCommand: 1 }, LOOK, functions),
  });
  const exclusive = scriptsWithKeys(declaresKeys ? 4 : 1);
  const renew = redisScript({ keys: 2, args: 2, maxCallsPerCommand: 100 }, RENEW_SHARE, functions);
  const has = redisScript({ keys: 2, args: 1, maxCallsPerCommand: 50 }, HAS_SHARE, functions);
  return { exclusive, shared: { ...(declaresKeys ? scriptsWithKeys(5) : exclusive), renew, has } };
}
