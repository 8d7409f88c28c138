/**
 * Time for which a key with a queue stays closed after somebody has deleted its lease. Its holder is told meanwhile, and then
 * opens the key itself.
 */
export const CLOSED_MS = 100;
/** A lease that ends so much earlier than expected has vanished. */
const EARLY_MS = 20;

/** Functions for a key whose lease has vanished. They use the functions and variables of the queue's state. */
export const CLOSING = `
local function close_key()
  redis.call('HSET', WAITERS, '', string.format('%.0f', -now_ms() - ${CLOSED_MS}))
end

-- Returns the ms for which a key without a lease stays closed. Closes it if its lease has vanished before its end.
local function ms_closed()
  local ends_at = tonumber(redis.call('HGET', WAITERS, '') or nil)
  if not ends_at then return 0 end
  local now = now_ms()
  if ends_at > now + ${EARLY_MS} then
    close_key()
    return ${CLOSED_MS}
  end
  local left = -ends_at - now
  -- More is left only where the clock was set back.
  return left > 0 and left <= ${CLOSED_MS} and left or 0
end
`;
