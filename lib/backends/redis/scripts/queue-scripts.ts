import { CLOSED_MS } from './closed-keys.js';
import { COMMON_CASES } from './common-cases.js';
import { MAX_WAITER_SILENCE_MS, QUEUE_TTL_MS, queueFunctionsSource } from './queue-functions.js';
import { createScript } from './redis-script.js';

/** TTL of a grant to a waiter, until the waiter's next call confirms the grant. */
const GRANT_TTL_MS = 5_000;
/** TTL of a grant to a waiter after the last holder died, or the last grant was not confirmed. */
const RETRIED_GRANT_TTL_MS = 2_000;

/** Lua names of the keys of a call that names all its keys, in the order of `queueKeysOf`. */
const KEYS_BY_KIND = {
  exclusive: ['lease_key', 'queue_key', 'fence_key', 'waiters_key'],
  shared: ['lease_key', 'queue_key', 'fence_key', 'waiters_key', 'shares_key'],
};

/** Reply to a call that lacks the key of the shares: it must be repeated by a `shared` script. */
export const NEEDS_SHARES_KEY = 'shared';

const GENERAL_CASE_ONLY = 'return nil';

/**
 * Acquires the key, or queues. `ttl` is in ms. `waiter` is `channel|metadata`. An empty channel means: do not queue.
 * Returns the token, or {ms until a lease may end, lease of one holder, index in the queue or -1}.
 */
const ACQUIRE = `
read_lease(lease_key)
if needs_shares_key() then return '${NEEDS_SHARES_KEY}' end
local ttl_ms = tonumber(ttl)
local channel, metadata = string.match(waiter, '^([^|]*)|(.*)$')
if taken_permits(lease) then
  remove_ended_shares()
  local token, share_metadata = share_of(owner)
  if token then
    renew_share(owner, token, share_metadata, ttl_ms)
    return token
  end
end
local closed = lease and 0 or ms_closed()
if closed == 0 and (not lease or taken_permits(lease)) then
  if grant_to_waiters(owner, ${MAX_WAITER_SILENCE_MS}, ${RETRIED_GRANT_TTL_MS}) then return grant(owner, metadata, ttl_ms) end
end
local holder, token = string.match(lease or '', '^([^|]*)|([^|]*)|')
if holder == owner then
  redis.call('PEXPIRE', LEASE, ttl)
  redis.call('HDEL', WAITERS, '')
  return token
end
local left, holder_lease, index = closed, '', -1
if lease then left, holder_lease = ms_left_and_holder() end
if channel ~= '' then
  local now = now_ms()
  local ends_at = not lease and -now - closed or not taken_permits(lease) and left > 0 and now + left or 0
  index = redis.call('LPOS', QUEUE, owner) or redis.call('RPUSH', QUEUE, owner) - 1
  redis.call('HSET', WAITERS, owner, waiter_entry(channel, now, ttl, metadata), '', string.format('%.0f', ends_at))
  redis.call('PEXPIRE', WAITERS, ${QUEUE_TTL_MS})
end
-- Runs without a queue as well: a server that may not write must not name a holder either.
redis.call('PEXPIRE', QUEUE, ${QUEUE_TTL_MS})
return {left, holder_lease, index}
`;

/**
 * Releases the key, or removes the owner from the queue. Then grants the key to waiters, even if it was free before.
 * Returns 1 if the owner held the key, else 0.
 */
const RELEASE = `
read_lease(lease_key)
if needs_shares_key() then return '${NEEDS_SHARES_KEY}' end
local lease_before = lease
local was_held
if claim_of(owner) then
  was_held = share_of(owner)
  if was_held then remove_share(owner) end
else
  was_held = lease and string.match(lease, '^[^|]*') == owner
  if was_held then lease = false end
end
local was_waiting = not was_held and remove_waiter(owner)
if taken_permits(lease) then remove_ended_shares() end
if lease and not taken_permits(lease) then return 0 end
if was_waiting and not lease and ms_closed() > 0 then return 0 end
redis.call('HDEL', WAITERS, '')
grant_to_waiters(nil, ${QUEUE_TTL_MS}, ${GRANT_TTL_MS})
if lease_before and not lease then redis.call('DEL', LEASE) end
return was_held and 1 or 0
`;

/**
 * Takes the key from an exclusive owner. A key with a queue stays closed until that owner learns of the loss, for
 * `CLOSED_MS` at most. Tells the first waiter that listens when to retry. Returns 1 if the owner held the key, else 0.
 */
const EVICT = `
read_lease(lease_key)
if not lease or string.match(lease, '^[^|]*') ~= owner then return 0 end
redis.call('DEL', LEASE)
local index = 0
while true do
  local waiter = redis.call('LINDEX', QUEUE, index)
  if not waiter then return 1 end
  if index == 0 then
    close_key()
    redis.call('PEXPIRE', WAITERS, ${QUEUE_TTL_MS})
  end
  local channel = string.match(redis.call('HGET', WAITERS, waiter) or '', '^[^|]*')
  if publish(channel, waiter .. '|${CLOSED_MS}') then return 1 end
  index = index + 1
end
`;

/** Renews a share. `ttl` is in ms. Returns 1 if the owner still has the share, else 0. */
const RENEW_SHARE = `
read_lease(lease_key)
local token, metadata = share_of(owner)
if not token then return 0 end
renew_share(owner, token, metadata, tonumber(ttl))
return 1
`;

/**
 * Gives the share of `former_owner` to `owner`, and renews it if `owner` has it already. Returns 1 if `owner` has the
 * share then, else 0. `value` is `token|metadata`, `ttl` is in ms.
 */
const ADOPT_SHARE = `
read_lease(lease_key)
if not share_of(owner) and not share_of(former_owner) then return 0 end
local token, metadata = string.match(value, '^(%d+)|(.*)$')
renew_share(owner, token, metadata, tonumber(ttl))
-- Earlier, this could delete the last share, and the next one would have no end.
redis.call('HDEL', SHARES, former_owner)
return 1
`;

const HAS_SHARE = `
read_lease(lease_key)
return share_of(owner) and 1 or 0
`;

/**
 * Returns {lease, ms left of it, server's time in ms, shares, queue}. `shares` is a list of an owner, its share, the
 * next owner, and so on. `queue` is a list of `owner|entry`, with the entries of `waiters`.
 */
const LOOK = `
read_lease(lease_key)
if needs_shares_key() then return '${NEEDS_SHARES_KEY}' end
local queue = {}
for index = 0, max_waiters - 1 do
  local owner = redis.call('LINDEX', QUEUE, index)
  if not owner then break end
  queue[index + 1] = owner .. '|' .. (redis.call('HGET', WAITERS, owner) or '')
end
local shares = taken_permits(lease) and redis.call('HGETALL', SHARES) or {}
return {lease, redis.call('PTTL', LEASE), string.format('%.0f', now_ms()), shares, queue}
`;

export type QueueScripts = ReturnType<typeof createQueueScripts>;

export interface QueueScriptSettings {
  /** Whether messages to waiters use sharded channels, as on a cluster. */
  readonly isSharded: boolean;
  /** Whether calls name all their keys, as clusters and some managed servers demand. Calls with one key are faster. */
  readonly declaresKeys: boolean;
}

/**
 * Returns the scripts for each kind of claim. A call on a cluster must name all its keys: the node of a migrating slot
 * can then refuse it before the script begins. That node also refuses a call that names a missing key. Therefore the
 * `exclusive` scripts do not name the key of the shares, which most locks never have.
 */
export function createQueueScripts({ isSharded, declaresKeys }: QueueScriptSettings) {
  const scriptsOfKind = (kind: 'exclusive' | 'shared') => {
    const keys = declaresKeys ? KEYS_BY_KIND[kind] : ['lease_key'];
    const functions = queueFunctionsSource({ isSharded, lacksSharesKey: declaresKeys && kind === 'exclusive' });
    const commonCases = COMMON_CASES[kind];
    const acquire = { keys, args: ['owner', 'ttl', 'waiter'], maxCallsPerCommand: 50 };
    const release = { keys, args: ['owner'], maxCallsPerCommand: 50 };
    const look = { keys, args: ['max_waiters'], maxCallsPerCommand: 1 };
    return {
      acquire: createScript(acquire, commonCases.acquire, { functions, body: ACQUIRE }),
      release: createScript(release, commonCases.release, { functions, body: RELEASE }),
      evict: createScript(release, GENERAL_CASE_ONLY, { functions, body: EVICT }),
      look: createScript(look, GENERAL_CASE_ONLY, { functions, body: LOOK }),
    };
  };
  const functions = queueFunctionsSource({ isSharded, lacksSharesKey: false });
  const keys = ['lease_key', 'shares_key'];
  const renew = { keys, args: ['owner', 'ttl'], maxCallsPerCommand: 100 };
  const adopt = { keys, args: ['former_owner', 'owner', 'value', 'ttl'], maxCallsPerCommand: 50 };
  const isHeld = { keys, args: ['owner'], maxCallsPerCommand: 50 };
  return {
    exclusive: scriptsOfKind('exclusive'),
    shared: {
      ...scriptsOfKind('shared'),
      renew: createScript(renew, GENERAL_CASE_ONLY, { functions, body: RENEW_SHARE }),
      adopt: createScript(adopt, GENERAL_CASE_ONLY, { functions, body: ADOPT_SHARE }),
      isHeld: createScript(isHeld, GENERAL_CASE_ONLY, { functions, body: HAS_SHARE }),
    },
  };
}
