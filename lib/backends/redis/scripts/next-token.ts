/**
 * Time for which the last token is kept after its lease. Later the server's clock alone makes tokens grow. Redis
 * measures this time by the same clock, and keeps the token for longer if the clock is set back. On other servers
 * tokens grow unless the clock is set back by more than this time.
 */
export const FENCE_TTL_MS = 3_600_000;

/**
 * Lua function that returns a token and the reply of TIME. The token is greater than the last one, and not less than
 * the clock in microseconds. Tokens therefore grow even if the fence, the key of the last token, is lost or is no
 * number. All tokens are below 2^53, where doubles are exact.
 */
export const NEXT_TOKEN_FUNCTION = `
local function next_token(fence_key, fence_ttl)
  local time, last = redis.call('TIME'), redis.call('GET', fence_key)
  local token = time[1] .. string.rep('0', 6 - #time[2]) .. time[2]
  last = last and tonumber(last)
  if last and last >= tonumber(token) then token = string.format('%.0f', last + 1) end
  redis.call('SET', fence_key, token, 'PX', fence_ttl)
  return token, time
end
`;
