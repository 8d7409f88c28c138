import { RENEW } from '../../../lib/backends/redis/scripts/lease-scripts.js';
import { createQueueScripts } from '../../../lib/backends/redis/scripts/queue-scripts.js';

/** Sources of the scripts on a line, ours or mutants, by what they do. */
export type LineScripts = Record<
  'acquire' | 'acquireShare' | 'release' | 'releaseShare' | 'look' | 'renew' | 'renewShare',
  string
>;

export function lineScripts(): LineScripts {
  const { exclusive, shared } = createQueueScripts({ isSharded: false, declaresKeys: false });
  return {
    acquire: exclusive.acquire.source,
    acquireShare: shared.acquire.source,
    release: exclusive.release.source,
    releaseShare: shared.release.source,
    look: exclusive.look.source,
    renew: RENEW.source,
    renewShare: shared.renew.source,
  };
}

/** KEYS: lease. ARGV: ms. So much of the time of all who have the key is over. */
export const PASS = `
local lease, by, shares = redis.call('GET', KEYS[1]), tonumber(ARGV[1]), KEYS[1] .. ':s'
if not lease then return end
local seen_end = tonumber(redis.call('HGET', KEYS[1] .. ':w', '') or nil)
if seen_end then redis.call('HSET', KEYS[1] .. ':w', '', string.format('%.0f', seen_end - by)) end
local left = redis.call('PTTL', KEYS[1]) - by
if left <= 0 then
  redis.call('HDEL', KEYS[1] .. ':w', '')
  return redis.call('DEL', KEYS[1], shares)
end
local taken, first_end = string.match(lease, '^|(%d+)|(%d+)|')
if taken then
  redis.call('SET', KEYS[1], string.format('|%d|%.0f|', taken, math.max(first_end - by, 1)))
  for _, owner in ipairs(redis.call('HKEYS', shares)) do
    local ends, rest = string.match(redis.call('HGET', shares, owner), '^(%d+)(|.*)$')
    redis.call('HSET', shares, owner, string.format('%.0f', math.max(ends - by, 1)) .. rest)
  end
  redis.call('PEXPIRE', shares, left)
end
redis.call('PEXPIRE', KEYS[1], left)
`;

/** KEYS: lease. Somebody has deleted it, so long ago that the key is no longer kept closed. */
export const DELETE = `
redis.call('HDEL', KEYS[1] .. ':w', '')
return redis.call('DEL', KEYS[1])
`;

/** KEYS: lease. ARGV: owner. Its process is dead, and the time of its lease, or of its place in line, is over. */
export const DIE = `
local lease, owner, shares = redis.call('GET', KEYS[1]), ARGV[1], KEYS[1] .. ':s'
local share, entry = redis.call('HGET', shares, owner), redis.call('HGET', KEYS[1] .. ':w', owner)
if lease and string.sub(lease, 1, #owner + 1) == owner .. '|' then redis.call('DEL', KEYS[1]) end
redis.call('HDEL', KEYS[1] .. ':w', '')
if lease and string.sub(lease, 1, 1) == '|' and share then
  redis.call('SET', KEYS[1], string.gsub(lease, '|%d+|$', '|1|'), 'KEEPTTL')
  redis.call('HSET', shares, owner, (string.gsub(share, '^%d+', '1')))
end
if entry then redis.call('HSET', KEYS[1] .. ':w', owner, 'nobody-listens|1|1|{}') end
`;

/** KEYS: lease. ARGV: owner, ms. So long ago it asked last, if it waits. */
export const SILENCE = `
local waiters = KEYS[1] .. ':w'
local entry = redis.call('HGET', waiters, ARGV[1])
if not entry then return end
local channel, seen, rest = string.match(entry, '^([^|]*)|%-?(%d+)(|.*)$')
redis.call('HSET', waiters, ARGV[1], string.format('%s|%.0f%s', channel, seen - ARGV[2], rest))
`;
