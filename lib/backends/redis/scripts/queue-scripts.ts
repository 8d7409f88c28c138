import { QUEUE_MS, queueFunctions, SILENT_MS } from './queue-functions.js';
import { redisScript } from './redis-script.js';

/** How long a waiter has the key that it was handed, until it asks. */
const GRANT_MS = 5_000;
/** The same after a holder that has died, or a waiter that did not ask. */
const NEXT_GRANT_MS = 2_000;

/** On a cluster: several have the key, and the call has to name their shares, see `shared`. */
export const NEEDS_SHARES_KEY = 'shared';

/**
 * KEYS: see `queueFunctions`. ARGV: owner, ttl in ms, `channel|metadata`, where the channel wakes the waiter ('' = do
 * not queue). Returns {1, token} or {0, ms until a lease may end, the lease of one who has the key, index in the queue
 * or -1}.
 */
const ACQUIRE = `
if read_lease() then return '${NEEDS_SHARES_KEY}' end
local owner, ttl = ARGV[1], tonumber(ARGV[2])
local channel, metadata = string.match(ARGV[3], '^([^|]*)|(.*)$')
if taken_in(lease) then
  sweep()
  local token, said = share_of(owner)
  if token then
    renew_share(owner, token, said, ttl)
    return {1, token}
  end
end
if not lease or taken_in(lease) then
  if serve(owner, ${SILENT_MS}, ${NEXT_GRANT_MS}) then return {1, grant(owner, metadata, ttl)} end
end
local holder, token = string.match(lease, '^([^|]*)|([^|]*)|')
if holder == owner then
  redis.call('PEXPIRE', LEASE, ttl)
  return {1, token}
end
local index = -1
if channel ~= '' then
  index = redis.call('LPOS', QUEUE, owner) or redis.call('RPUSH', QUEUE, owner) - 1
  note(owner, channel, now_ms(), ARGV[2], metadata)
  redis.call('PEXPIRE', WAITERS, ${QUEUE_MS})
end
-- Also where there is no queue: a server that may not write must not tell who has the key either.
redis.call('PEXPIRE', QUEUE, ${QUEUE_MS})
local left, shown = left_and_shown()
return {0, left, shown, index}
`;

/**
 * KEYS: see `queueFunctions`. ARGV: owner. Passes the key on, or leaves the queue. Passes on a key, too, that somebody
 * has deleted, and what fits beside those who have it. Returns 1 if the key was the owner's, else 0.
 */
const RELEASE = `
if read_lease() then return '${NEEDS_SHARES_KEY}' end
local owner, found = ARGV[1], lease
local ours
if claim_of(owner) then
  ours = share_of(owner)
  if ours then drop_share(owner) end
else
  ours = lease and string.match(lease, '^[^|]*') == owner
  if ours then lease = false end
end
if not ours then leave(owner) end
if lease and not taken_in(lease) then return 0 end
serve(nil, ${QUEUE_MS}, ${GRANT_MS})
if found and not lease then redis.call('DEL', LEASE) end
return ours and 1 or 0
`;

/** KEYS: see `shareKeysOf`. ARGV: owner, ttl in ms. Returns 1 if the owner still has its share, for another ttl, else 0. */
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
 * KEYS: see `queueFunctions`. ARGV: how many waiters. Changes nothing. Returns {lease, ms left of it, the server's time
 * in ms, shares, line}: owners and values of `shares` by turns, a line of `owner|waiter` as `waiters` has them.
 */
const LOOK = `
if read_lease() then return '${NEEDS_SHARES_KEY}' end
local line = {}
for index = 0, ARGV[1] - 1 do
  local owner = redis.call('LINDEX', QUEUE, index)
  if not owner then break end
  line[index + 1] = owner .. '|' .. (redis.call('HGET', WAITERS, owner) or '')
end
local shares = taken_in(lease) and redis.call('HGETALL', SHARES) or {}
return {lease, redis.call('PTTL', LEASE), string.format('%.0f', now_ms()), shares, line}
`;

export type QueueScripts = ReturnType<typeof queueScripts>;

export interface QueueScriptSettings {
  /** Whether waiters are told on channels that belong to slots of a cluster. */
  readonly sharded: boolean;
  /** Whether calls name all their keys, as clusters and some managed servers demand. Naming one is quicker. */
  readonly declaresKeys: boolean;
}

/**
 * Returns the scripts for one server, or for a cluster. A node of a cluster has to know all keys that matter: a slot that
 * is moving must stop the script before it begins. It would stop most scripts for a key that is never there. `exclusive`
 * leaves out the shares, for as long as nobody has any.
 */
export function queueScripts({ sharded, declaresKeys }: QueueScriptSettings) {
  const functions = queueFunctions({ sharded });
  const scriptsOn = (keys: number) => ({
    acquire: redisScript({ keys, args: 3, maxCallsPerCommand: 50 }, ACQUIRE, functions),
    release: redisScript({ keys, args: 1, maxCallsPerCommand: 50 }, RELEASE, functions),
    look: redisScript({ keys, args: 1, maxCallsPerCommand: 1 }, LOOK, functions),
  });
  const exclusive = scriptsOn(declaresKeys ? 4 : 1);
  const renew = redisScript({ keys: 2, args: 2, maxCallsPerCommand: 100 }, RENEW_SHARE, functions);
  const has = redisScript({ keys: 2, args: 1, maxCallsPerCommand: 50 }, HAS_SHARE, functions);
  return { exclusive, shared: { ...(declaresKeys ? scriptsOn(5) : exclusive), renew, has } };
}
