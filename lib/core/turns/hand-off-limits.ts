import { type HandOffOptions, MAX_HAND_OFFS } from '../options/hand-off-options.js';

const MAX_HAND_OFF_MS = 100;

/**
 * A turn has to be long, so that few of its callers are those who waited for it, and a round of the processes short,
 * since one of them waits for all the others' turns.
 */
const MAX_HAND_OFF_MS_IN_LINE = 20;

/** Returns whether callers of this process have had a lease as often, or for as long, as they may. */
export function isExhausted(
  { maxHandOffs = MAX_HAND_OFFS, maxHandOffMs }: HandOffOptions,
  { queued = false }: { readonly queued?: boolean },
  times: number,
  heldMs: number,
): boolean {
  const longestMs = maxHandOffMs ?? (queued ? MAX_HAND_OFF_MS_IN_LINE : MAX_HAND_OFF_MS);
  return times >= maxHandOffs || heldMs >= longestMs;
}
