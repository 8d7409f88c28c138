/**
 * Time for which the last token is kept after its lease. Later the server's clock alone makes tokens grow. Redis measures
 * this time by the same clock: one that is set back keeps the token for longer. On other servers a clock may be set back
 * by this time, and tokens still grow.
 */
export const FENCE_TTL_MS = 3_600_000;

/**
 * Returns a token greater than the last one, and not less than the clock in microseconds. Tokens therefore grow even if the
 * fence is lost, or has a text that is no number. All are below 2^53, where doubles are exact.
 */
export const NEXT_TOKEN = `
local function next_token(fence_key, fence_ttl)
  local time, last = redis.call('TIME'), redis.call('GET', fence_key)
  local token = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
  last = last and tonumber(last)
  if last and last >= tonumber(token) then token = string.format('%.0f', last + 1) end
  redis.call('SET', fence_key, token, 'PX', fence_ttl)
  return token
end
`;
