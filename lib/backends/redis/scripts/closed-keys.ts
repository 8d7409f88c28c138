/**
 * Time for which a key with a queue stays closed after its lease was deleted: no caller is granted the key. Meanwhile
 * the former holder learns of the loss, and opens the key by its release.
 */
export const CLOSED_MS = 100;
/** A lease that is missing within this time before its end counts as expired, and one missing earlier as deleted. */
const EXPIRY_TOLERANCE_MS = 20;

/** Lua functions for a key whose lease was deleted. A script must have `STATE_FUNCTIONS` before them. */
export const CLOSED_KEY_FUNCTIONS = `
local function close_key()
  redis.call('HSET', WAITERS, '', string.format('%.0f', -now_ms() - ${CLOSED_MS}))
end

-- Returns the ms for which a key without a lease stays closed. Closes it if its lease was deleted before its end.
local function ms_closed()
  local ends_at = tonumber(redis.call('HGET', WAITERS, '') or nil)
  if not ends_at then return 0 end
  local now = now_ms()
  if ends_at > now + ${EXPIRY_TOLERANCE_MS} then
    close_key()
    return ${CLOSED_MS}
  end
  local left = -ends_at - now
  -- More is left only if the clock was set back.
  return left > 0 and left <= ${CLOSED_MS} and left or 0
end
`;
