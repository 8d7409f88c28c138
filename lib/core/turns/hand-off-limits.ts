import { type HandOffOptions, MAX_HAND_OFFS } from '../options/hand-off-options.js';

const MAX_HAND_OFF_MS = 100;

/**
 * Maximum time for a lease that was waited for in a queue. A longer turn serves more callers per wait in the queue, and a
 * shorter one shortens the wait of all other processes.
 */
const MAX_HAND_OFF_MS_IN_LINE = 20;

/** Returns whether callers of this process have had a lease as often, or for as long, as they may. */
export function isExhausted(
  { maxHandOffs = MAX_HAND_OFFS, maxHandOffMs }: HandOffOptions,
  { wasQueued = false }: { readonly wasQueued?: boolean },
  times: number,
  heldMs: number,
): boolean {
  const longestMs = maxHandOffMs ?? (wasQueued ? MAX_HAND_OFF_MS_IN_LINE : MAX_HAND_OFF_MS);
  return times >= maxHandOffs || heldMs >= longestMs;
}
